#pragma once

#include "collimate/tensor/kernels/aligned_buffer.h"

namespace collimate::tensor {

// scratch() returns working memory of operations. Each thread has its own and keeps it between calls, because the first
// touch of a page is expensive. Each use names its own slot, so that an operation that calls another never shares a
// slot with it.
enum class ScratchSlot { kCaller, kLeft, kRight, kSum, kAttention, kLogits, kCount };

inline float* scratch(ScratchSlot slot, int64_t floats) {
  thread_local AlignedBuffer buffers[static_cast<int>(ScratchSlot::kCount)];
  return buffers[static_cast<int>(slot)].floats(floats);
}

}  // namespace collimate::tensor
