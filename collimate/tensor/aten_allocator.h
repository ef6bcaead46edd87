#pragma once

namespace collimate::tensor {

// While it lives ATen's CPU tensors come from this program's allocator (install_aten_allocator), for a library in
// another's process; tensors may outlive it. One at a time.
class AtenAllocatorScope {
 public:
  AtenAllocatorScope();
  ~AtenAllocatorScope();
  AtenAllocatorScope(const AtenAllocatorScope&) = delete;
  AtenAllocatorScope& operator=(const AtenAllocatorScope&) = delete;

 private:
  void* previous_;
};

}  // namespace collimate::tensor
