#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// Rows are contiguous [rows, width] unless a stride is given. A row's bits depend on that row alone.

// Computes y = x * inv * (offset + weight) with inv = 1 / sqrt(mean(x²) + eps). Saves inv_rms [rows] unless it is
// null. y may be x.
void rms_norm(const Exec& exec, const float* x, int64_t rows, int64_t width, const float* weight, float eps, float* y,
              float* inv_rms = nullptr, float offset = 0);
// Writes the gradient to dx, or with `accumulate` adds it, as a residual stream needs. dweight [width], unless null, +=
// its gradient over rows in ascending order. dx may be dy when not accumulating.
void rms_norm_backward(const Exec& exec, const float* dy, const float* x, const float* inv_rms, int64_t rows,
                       int64_t width, const float* weight, float* dx, bool accumulate, float* dweight,
                       float offset = 0);

// head_norm() normalises each head [head_dim] of rows with a stride, x [rows, heads * head_dim] to y of the same
// stride: by rms_norm or, where `centred`, by the layer norm below without a bias. All heads share a weight [head_dim],
// or with `own_weights` each has its own [heads * head_dim]. inv_rms [rows * heads] is saved unless null and, where
// centred, as many means behind it.
struct HeadRows {
  int64_t rows = 0;
  int64_t stride = 0;  // floats between rows
  int heads = 0;
  int head_dim = 0;
  bool own_weights = false;
  bool centred = false;
  int64_t moments() const { return rows * heads * (centred ? 2 : 1); }
};
void head_norm(const Exec& exec, const float* x, const HeadRows& shape, const float* weight, float eps, float* y,
               float* inv_rms = nullptr, float offset = 0);
// Writes the gradient to dx; dweight, sized as the weight, += over rows and their heads in ascending order unless null.
void head_norm_backward(const Exec& exec, const float* dy, const float* x, const float* inv_rms, const HeadRows& shape,
                        const float* weight, float* dx, float* dweight, float offset = 0);

// Computes y = (x - mean) * inv * (offset + weight) + bias, with the biased variance, as torch does; bias may be null.
// Saves mean and inv_std [rows] unless null.
void layer_norm(const Exec& exec, const float* x, int64_t rows, int64_t width, const float* weight, const float* bias,
                float eps, float* y, float* mean = nullptr, float* inv_std = nullptr, float offset = 0);
void layer_norm_backward(const Exec& exec, const float* dy, const float* x, const float* mean, const float* inv_std,
                         int64_t rows, int64_t width, const float* weight, float* dx, bool accumulate, float* dweight,
                         float* dbias, float offset = 0);

}  // namespace collimate::tensor
