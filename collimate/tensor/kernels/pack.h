#pragma once

#include <cstdint>

namespace collimate::tensor::avx2 {

// Eight rows of a weight, `stride` floats apart, into eight neighbouring columns of a panel.
// fp32: column c of depth k at to[k * 32 + c].
void pack_eight_fp32(const float* w, int64_t stride, int64_t depth, float* to);
// bf16, one chunk, zeros up to the next multiple of 32: pair k / 2 of the 32-deep step k / 32 at
// to[k / 32 * 1024 + k % 32 / 2 * 32 + 2 c + k % 2].
void pack_eight_bf16(const float* w, int64_t stride, int64_t depth, uint16_t* to);

}  // namespace collimate::tensor::avx2
