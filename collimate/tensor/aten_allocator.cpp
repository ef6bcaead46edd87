#include "collimate/tensor/aten_allocator.h"

#include <ATen/core/Tensor.h>
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

constexpr uint8_t kPriority = 100;

}  // namespace

void install_aten_allocator() {
  static auto* allocator = new AtenAllocator;  // outlives every tensor
  c10::SetCPUAllocator(allocator, kPriority);
}

AtenAllocatorScope::AtenAllocatorScope() : previous_(c10::GetCPUAllocator()) { install_aten_allocator(); }
AtenAllocatorScope::~AtenAllocatorScope() { c10::SetCPUAllocator(static_cast<c10::Allocator*>(previous_), kPriority); }

void retag(const at::Tensor& tensor, int worker, std::optional<int> holder) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  const c10::DataPtr& data = tensor.storage().data_ptr();
  if (data.get_deleter() == &deallocate && data.get_context() != nullptr) retag(data.get_context(), worker, holder);
}

}  // namespace collimate::tensor
