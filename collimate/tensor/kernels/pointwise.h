#pragma once

#include <cstdint>

#include "collimate/tensor/kernels/table.h"

namespace collimate::tensor {

struct Gated {
  const float* gate = nullptr;
  const float* up = nullptr;
  int64_t in_stride = 0;
  int64_t width = 0;
  float* y = nullptr;         // forward
  const float* dy = nullptr;  // backward
  int64_t y_stride = 0;       // row stride of y or dy
  float* dgate = nullptr;
  float* dup = nullptr;
  float slope = 1, bound = 0;  // of bounded_swish_mul
};

struct Rope {
  float* x = nullptr;
  int64_t stride = 0;
  int heads = 0;
  int head_dim = 0;
  int half = 0;
  const int32_t* positions = nullptr;
  const float* cos = nullptr;
  const float* sin = nullptr;
  bool inverse = false;
};

// DropoutRows are the rows of a Dropout (ops/dropout.h).
struct DropoutRows {
  const int32_t* low = nullptr;   // [rows] lower halves of the rows' keys
  const int32_t* high = nullptr;  // [rows] upper halves
  uint64_t layer = 0;
  uint32_t dropped_below = 0;
  float factor = 1;
  int64_t first_column = 0;
  const float* x = nullptr;
  int64_t width = 0;
  float* y = nullptr;
  bool accumulate = false;
};

// DottedColumns are the matrices of ColumnDots (ops/columns.h) and their sums.
struct DottedColumns {
  const float* factors = nullptr;
  const float* x = nullptr;
  const float* y = nullptr;
  int64_t rows = 0;
  int64_t stride = 0;
  float* sums = nullptr;
};
// A call of add_column_dots has at most so many columns.
constexpr int64_t kColumnStrip = 64;

// AdamwScalars are the scalars of one AdamW update, in the precision of the elements.
struct AdamwScalars {
  float keep;  // 1 - lr * weight_decay
  float one_minus_beta1;
  float beta2;
  float one_minus_beta2;
  float minus_step;       // -lr / (1 - beta1^t)
  float root_correction;  // sqrt(1 - beta2^t)
  float eps;
  float grad_scale;
};

// PointwiseKernels work on ranges of rows or of elements.
struct PointwiseKernels {
  void (*silu_mul)(const Gated& s, int64_t begin, int64_t end);
  void (*silu_mul_backward)(const Gated& s, int64_t begin, int64_t end);
  void (*gelu_tanh_mul)(const Gated& s, int64_t begin, int64_t end);
  void (*gelu_tanh_mul_backward)(const Gated& s, int64_t begin, int64_t end);
  void (*bounded_swish_mul)(const Gated& s, int64_t begin, int64_t end);
  void (*bounded_swish_mul_backward)(const Gated& s, int64_t begin, int64_t end);
  void (*gelu_tanh)(const float* x, int64_t count, float* y);
  void (*gelu_tanh_backward)(const float* dy, const float* x, int64_t count, float* dx);
  void (*gelu)(const float* x, int64_t count, float* y);
  void (*gelu_backward)(const float* dy, const float* x, int64_t count, float* dx);
  void (*relu)(const float* x, int64_t count, float* y);
  void (*relu_backward)(const float* dy, const float* x, int64_t count, float* dx);
  void (*relu_squared)(const float* x, int64_t count, float* y);
  void (*relu_squared_backward)(const float* dy, const float* x, int64_t count, float* dx);
  void (*sigmoid)(const float* x, int64_t count, float* y);
  void (*sigmoid_backward)(const float* dy, const float* x, int64_t count, float* dx);
  void (*add)(const float* x, int64_t count, float* y);
  void (*scale)(float factor, int64_t count, float* x);
  void (*scale_columns)(const float* factors, const float* x, int64_t count, float* y);
  void (*add_column_dots)(const DottedColumns& d, int64_t begin, int64_t end);
  void (*round_bf16)(int64_t count, float* x);
  void (*rope)(const Rope& r, int64_t begin, int64_t end);
  void (*dropout)(const DropoutRows& d, int64_t begin, int64_t end);
  void (*adamw)(float* p, const float* g, float* m, float* v, int64_t count, const AdamwScalars& s);
};

COLLIMATE_KERNEL_TABLE(PointwiseKernels, kPointwise, pointwise_kernels);

}  // namespace collimate::tensor
