#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace collimate::cuda {

// y[r, i] = weight[i] * x[r, i] / sqrt(mean_i(x[r, i]^2) + eps). x, y: [rows, width], weight: [width], inv: [rows], the
// factor that the backward pass needs, may be null; all fp32 on the device, y may be x. Queued on `stream`, does not
// block. A row's bits depend on its values alone, not on its neighbours or where it lies: one block a row, a sum in a
// fixed tree. Relative error at most 1e-6. Returns the launch's error.
cudaError_t rms_norm(const float* x, const float* weight, float eps, int64_t rows, int64_t width, float* y, float* inv,
                     cudaStream_t stream);

}  // namespace collimate::cuda
