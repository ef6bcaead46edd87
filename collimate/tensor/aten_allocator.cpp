#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>

#include "collimate/tensor/allocator.h"

namespace collimate::tensor {
namespace {

class AtenAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* block = bytes == 0 ? nullptr : tensor::allocate(static_cast<int64_t>(bytes));
    return {block, block, &deallocate, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &deallocate; }
  void copy_data(void* destination, const void* source, size_t bytes) const override {
    std::memcpy(destination, source, bytes);
  }
};

}  // namespace

void install_aten_allocator() {
  static auto* allocator = new AtenAllocator;  // outlives every tensor
  c10::SetCPUAllocator(allocator, /*priority=*/100);
}

}  // namespace collimate::tensor
