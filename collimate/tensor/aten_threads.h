#pragma once

#include "collimate/base/immovable.h"

namespace collimate::tensor {

// Keeps ATen's own loops in the calling thread for the rest of that thread's life: parallel work goes through a
// worker's core pool, and idle OpenMP threads that spin would take the cores of other ranks. A worker calls this first.
void use_one_aten_thread();

// While it lives, the calling thread and threads that begin meanwhile have one ATen thread; afterwards as many as
// before.
class OneAtenThread : private base::Immovable {
 public:
  OneAtenThread();
  ~OneAtenThread();

 private:
  int before_;
};

}  // namespace collimate::tensor
