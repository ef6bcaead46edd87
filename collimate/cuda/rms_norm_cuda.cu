#include "collimate/cuda/rms_norm_cuda.h"

namespace collimate::cuda {

namespace {

constexpr int kThreads = 256;  // of a row's block
constexpr int kWarp = 32;      // threads of a warp
constexpr int kWarps = kThreads / kWarp;
constexpr int kStep = kThreads * 4;  // elements that a block reads at once, four by each thread

// The four elements of `row` from i on; those at or past `width` are 0. kWide: row + i is aligned to 16 bytes and has
// four elements. Both kinds of load give the same values, so that a row's bits do not depend on where it lies.
template <bool kWide>
__device__ float4 load(const float* row, int64_t i, int64_t width) {
  if constexpr (kWide) return i < width ? *reinterpret_cast<const float4*>(row + i) : float4{0, 0, 0, 0};
  const auto at = [&](int64_t k) { return k < width ? row[k] : 0.0F; };
  return {at(i), at(i + 1), at(i + 2), at(i + 3)};
}

template <bool kWide>
__device__ void store(float* row, int64_t i, int64_t width, float4 value) {
  if constexpr (kWide) {
    if (i < width) *reinterpret_cast<float4*>(row + i) = value;
  } else {
    const float four[] = {value.x, value.y, value.z, value.w};
    for (int k = 0; k < 4; ++k)
      if (i + k < width) row[i + k] = four[k];
  }
}

__device__ float add_squares(float sum, float4 v) {
  return fmaf(v.w, v.w, fmaf(v.z, v.z, fmaf(v.y, v.y, fmaf(v.x, v.x, sum))));
}

__device__ float warp_sum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, offset);
  return value;
}

// The sum over the block, in every thread: a tree over each warp, then one over the warps.
__device__ float block_sum(float value) {
  __shared__ float of_warp[kWarps];
  value = warp_sum(value);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  return warp_sum(threadIdx.x % kWarp < kWarps ? of_warp[threadIdx.x % kWarp] : 0.0F);
}

__device__ float4 scaled(float4 x, float4 weight, float scale) {
  return {weight.x * (x.x * scale), weight.y * (x.y * scale), weight.z * (x.z * scale), weight.w * (x.w * scale)};
}

// kHeld: steps whose elements stay in registers, so that a row of kHeld * kStep elements is read once. The order of the
// sum is the same for all of them.
template <bool kWide, int kHeld>
__global__ void __launch_bounds__(kThreads)
    rms_norm_rows(const float* x, const float* weight, float eps, int64_t width, float* y, float* inv) {
  const float* row = x + blockIdx.x * width;
  float* out = y + blockIdx.x * width;
  const int64_t first = threadIdx.x * 4;
  float4 held[kHeld];
  float sum = 0;
#pragma unroll
  for (int step = 0; step < kHeld; ++step) held[step] = load<kWide>(row, first + step * kStep, width);
#pragma unroll
  for (int step = 0; step < kHeld; ++step) sum = add_squares(sum, held[step]);
  for (int64_t i = first + kHeld * kStep; i < width; i += kStep) sum = add_squares(sum, load<kWide>(row, i, width));
  const float scale = 1.0F / sqrtf(block_sum(sum) / static_cast<float>(width) + eps);
  if (inv != nullptr && threadIdx.x == 0) inv[blockIdx.x] = scale;
#pragma unroll
  for (int step = 0; step < kHeld; ++step) {
    const int64_t i = first + step * kStep;
    if (i < width) store<kWide>(out, i, width, scaled(held[step], load<kWide>(weight, i, width), scale));
  }
  for (int64_t i = first + kHeld * kStep; i < width; i += kStep)
    store<kWide>(out, i, width, scaled(load<kWide>(row, i, width), load<kWide>(weight, i, width), scale));
}

template <bool kWide>
auto kernel_for(int64_t width) {
  if (width <= kStep) return rms_norm_rows<kWide, 1>;
  if (width <= 2 * kStep) return rms_norm_rows<kWide, 2>;
  return width <= 4 * kStep ? rms_norm_rows<kWide, 4> : rms_norm_rows<kWide, 8>;
}

bool aligned(const void* memory) { return reinterpret_cast<uintptr_t>(memory) % sizeof(float4) == 0; }

}  // namespace

cudaError_t rms_norm(const float* x, const float* weight, float eps, int64_t rows, int64_t width, float* y, float* inv,
                     cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const bool wide = width % 4 == 0 && aligned(x) && aligned(weight) && aligned(y);
  const auto kernel = wide ? kernel_for<true>(width) : kernel_for<false>(width);
  kernel<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, weight, eps, width, y, inv);
  return cudaGetLastError();
}

}  // namespace collimate::cuda
