#include "collimate/tensor/scratch_need.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/tensor/allocator.h"

namespace collimate::tensor {

void ScratchNeed::in_caller(ScratchSlot slot, int64_t floats) {
  int64_t& most = base::at(caller_, static_cast<size_t>(slot));
  most = std::max(most, floats);
}

void ScratchNeed::in_each(ScratchSlot slot, int64_t floats) {
  int64_t& most = base::at(each_, static_cast<size_t>(slot));
  most = std::max(most, floats);
}

void ScratchNeed::in_each(const ScratchNeed& alone) {
  for (size_t slot = 0; slot < each_.size(); ++slot)
    in_each(static_cast<ScratchSlot>(slot), std::max(base::at(alone.caller_, slot), base::at(alone.each_, slot)));
}

int64_t ScratchNeed::bytes() const {
  const auto held = [](int64_t floats) {
    return floats == 0 ? 0 : allocated_bytes(floats * static_cast<int64_t>(sizeof(float)));
  };
  int64_t bytes = 0;
  for (size_t slot = 0; slot < each_.size(); ++slot) {
    const int64_t each = base::at(each_, slot);
    bytes += held(std::max(base::at(caller_, slot), each)) + (threads_ - 1) * held(each);
  }
  return bytes;
}

}  // namespace collimate::tensor
