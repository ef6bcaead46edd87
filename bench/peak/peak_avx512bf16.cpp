#include "collimate/tensor/kernels/vec.inc"

namespace collimate::tensor::avx512_bf16 {

float dot_loop(int64_t steps);

// Runs twelve chains of vdpbf16ps in registers.
float dot_loop(int64_t steps) {
  constexpr int kChains = 12;
  Vec acc[kChains];
  for (int c = 0; c < kChains; ++c) acc[c] = set1(static_cast<float>(c));
  const __m512bh a = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3c003c00));  // 2^-7 twice
  for (int64_t s = 0; s < steps; ++s) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) acc[c].v = _mm512_dpbf16_ps(acc[c].v, a, a);
  }
  Vec total = acc[0];
  for (int c = 1; c < kChains; ++c) total = add(total, acc[c]);
  return sum_lanes(total);
}

}  // namespace collimate::tensor::avx512_bf16
