#pragma once

#include "collimate/tensor/kernels/aligned_buffer.h"

namespace collimate::tensor {

// Working memory of ops, one set per thread, kept between calls (a first touch of a page is dear). Each use names its
// own slot, so an op that calls another never shares a slot with it.
enum class ScratchSlot { kCaller, kLeft, kRight, kSum, kAttention, kLogits, kCount };

inline float* scratch(ScratchSlot slot, int64_t floats) {
  thread_local AlignedBuffer buffers[static_cast<int>(ScratchSlot::kCount)];
  return buffers[static_cast<int>(slot)].floats(floats);
}

}  // namespace collimate::tensor
