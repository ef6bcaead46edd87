#pragma once

#include "collimate/base/immovable.h"

namespace collimate::tensor {

// While it lives, ATen's CPU tensors come from this program's allocator (install_aten_allocator). A library that runs
// in another program's process uses it. Tensors may outlive it. Only one may live at a time.
class AtenAllocatorScope : private base::Immovable {
 public:
  AtenAllocatorScope();
  ~AtenAllocatorScope();

 private:
  void* previous_;
};

}  // namespace collimate::tensor
