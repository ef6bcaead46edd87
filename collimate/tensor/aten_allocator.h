#pragma once

#include "collimate/base/immovable.h"

namespace collimate::tensor {

// While it lives ATen's CPU tensors come from this program's allocator (install_aten_allocator), for a library in
// another's process; tensors may outlive it. One at a time.
class AtenAllocatorScope : private base::Immovable {
 public:
  AtenAllocatorScope();
  ~AtenAllocatorScope();

 private:
  void* previous_;
};

}  // namespace collimate::tensor
