#include "collimate/tensor/kernels/pack.h"
#include "collimate/tensor/kernels/vec.inc"

namespace collimate::tensor::avx2 {
namespace {

// Transposes 8 by 8 elements of 32 bits.
inline void transpose(__m256 (&r)[8]) {
  __m256 a[8];
  __m256 b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}

// Returns up to 16 floats as 8 pairs of bf16, the lower k in the lower half of each.
inline __m256 pairs_of(const float* p, int64_t count) {
  const Vec x = round_bf16(load_upto(p, count));
  const __m256i lo = _mm256_srli_epi32(_mm256_castps_si256(x.lo), 16);
  const __m256i hi = _mm256_srli_epi32(_mm256_castps_si256(x.hi), 16);
  return _mm256_castsi256_ps(_mm256_permute4x64_epi64(_mm256_packus_epi32(lo, hi), 0xd8));
}

}  // namespace

void pack_eight_fp32(const float* w, int64_t stride, int64_t depth, float* to) {
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8) {
    __m256 r[8];
    for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(w + i * stride + k);
    transpose(r);
    for (int i = 0; i < 8; ++i) _mm256_storeu_ps(to + (k + i) * 32, r[i]);
  }
  for (; k < depth; ++k) {
    for (int c = 0; c < 8; ++c) to[k * 32 + c] = w[c * stride + k];
  }
}

void pack_eight_bf16(const float* w, int64_t stride, int64_t depth, uint16_t* to) {
  const int64_t padded = (depth + 31) / 32 * 32;
  for (int64_t k = 0; k < padded; k += 16) {
    __m256 r[8];
    for (int c = 0; c < 8; ++c) r[c] = k < depth ? pairs_of(w + c * stride + k, depth - k) : _mm256_setzero_ps();
    transpose(r);
    uint16_t* at = to + k / 32 * 1024 + k % 32 / 2 * 32;
    for (int i = 0; i < 8; ++i) _mm256_storeu_ps(reinterpret_cast<float*>(at + i * 32), r[i]);
  }
}

}  // namespace collimate::tensor::avx2
