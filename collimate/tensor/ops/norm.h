#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// Rows are contiguous [rows, width] unless a stride is given. Each row's bits depend on that row alone.

// y = x * inv * (offset + weight) with inv = 1 / sqrt(mean(x²) + eps). inv_rms [rows] is saved when not null. y may
// be x.
void rms_norm(const Exec& exec, const float* x, int64_t rows, int64_t width, const float* weight, float eps, float* y,
              float* inv_rms = nullptr, float offset = 0);
// dx (+)= gradient (accumulate: added, as a residual stream needs); dweight [width] += over rows in ascending order
// when not null. dx may be dy when not accumulating.
void rms_norm_backward(const Exec& exec, const float* dy, const float* x, const float* inv_rms, int64_t rows,
                       int64_t width, const float* weight, float* dx, bool accumulate, float* dweight,
                       float offset = 0);

// The norm is that above, or where it is centred the layer norm below, of each head [head_dim] of rows with a stride,
// by one weight [head_dim] or one of each head [heads head_dim]: x [rows, heads head_dim] to y of the same stride. When
// not null inv_rms [rows heads] is saved, and behind it where centred as many means.
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
// dx = gradient; dweight, as the weight, += over rows and their heads in ascending order when not null.
void head_norm_backward(const Exec& exec, const float* dy, const float* x, const float* inv_rms, const HeadRows& shape,
                        const float* weight, float* dx, float* dweight, float offset = 0);

// y = (x - mean) * inv * (offset + weight) + bias (bias may be null), biased variance as torch. Saves mean and inv
// [rows].
void layer_norm(const Exec& exec, const float* x, int64_t rows, int64_t width, const float* weight, const float* bias,
                float eps, float* y, float* mean = nullptr, float* inv_std = nullptr, float offset = 0);
void layer_norm_backward(const Exec& exec, const float* dy, const float* x, const float* mean, const float* inv_std,
                         int64_t rows, int64_t width, const float* weight, float* dx, bool accumulate, float* dweight,
                         float* dbias, float offset = 0);

}  // namespace collimate::tensor
