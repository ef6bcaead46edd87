#pragma once

#include <cstdint>

namespace collimate::tensor::avx2 {

// Both functions pack eight rows of a weight, `stride` floats apart, into eight neighbouring columns of a panel. In
// fp32, column c of depth k is at to[k * 32 + c].
void pack_eight_fp32(const float* w, int64_t stride, int64_t depth, float* to);
// pack_eight_bf16 packs one chunk, with zeros up to the next multiple of 32: column c of depth k is at to[k / 32 * 1024
// + k % 32 / 2 * 32 + 2 c + k % 2], so that pairs of k lie together.
void pack_eight_bf16(const float* w, int64_t stride, int64_t depth, uint16_t* to);

}  // namespace collimate::tensor::avx2
