#include "collimate/cuda/rms_norm_cuda.h"

namespace collimate::cuda {

namespace {

constexpr int kThreads = 256;  // of a row's block; a power of two, the shape of the sum's tree

__global__ void rms_norm_rows(const float* x, const float* weight, float eps, int64_t width, float* y, float* inv) {
  __shared__ float partial[kThreads];
  const float* row = x + blockIdx.x * width;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) sum = fmaf(row[i], row[i], sum);
  partial[threadIdx.x] = sum;
  for (int stride = kThreads / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
  }
  __syncthreads();
  const float scale = 1.0F / sqrtf(partial[0] / static_cast<float>(width) + eps);
  if (inv != nullptr && threadIdx.x == 0) inv[blockIdx.x] = scale;
  float* out = y + blockIdx.x * width;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) out[i] = weight[i] * (row[i] * scale);
}

}  // namespace

cudaError_t rms_norm(const float* x, const float* weight, float eps, int64_t rows, int64_t width, float* y, float* inv,
                     cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  rms_norm_rows<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(x, weight, eps, width, y, inv);
  return cudaGetLastError();
}

}  // namespace collimate::cuda
