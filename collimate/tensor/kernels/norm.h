#pragma once

#include <cstdint>

#include "collimate/tensor/kernels/table.h"

namespace collimate::tensor {

// Row r begins at of(r): rows of `width` lie one behind another, or `group` of them in each `stride` floats.
struct NormStrides {
  int64_t width = 0, group = 1, stride = 0;
  int64_t of(int64_t row) const { return row / group * stride + row % group * width; }
};

struct NormForward {
  const float* x = nullptr;
  int64_t width = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;  // layer norm only; may be null
  float eps = 0;
  float* y = nullptr;
  float* mean = nullptr;  // layer norm only; may be null
  float* inv = nullptr;   // may be null
  float offset = 0;       // added to each weight
  NormStrides place = {width, 1, width};
};

struct NormBackward {
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* mean = nullptr;  // null: rms norm
  const float* inv = nullptr;
  int64_t rows = 0;
  int64_t width = 0;
  const float* weight = nullptr;
  float* dx = nullptr;
  bool accumulate = false;
  float* dweight = nullptr;
  float* dbias = nullptr;
  float offset = 0;  // as forward's
  NormStrides place = {width, 1, width};
};

// Columns of parameter gradients that one call sums.
constexpr int64_t kNormStrip = 128;

// Row ranges of a norm, and column ranges of at most kNormStrip for its parameters' gradients.
struct NormKernels {
  void (*rms)(const NormForward& f, int64_t begin, int64_t end);
  void (*layer)(const NormForward& f, int64_t begin, int64_t end);
  void (*rms_backward)(const NormBackward& b, int64_t begin, int64_t end);
  void (*layer_backward)(const NormBackward& b, int64_t begin, int64_t end);
  void (*parameter_gradients)(const NormBackward& b, int64_t column_begin, int64_t column_end);
};

COLLIMATE_KERNEL_TABLE(NormKernels, kNorm, norm_kernels);

}  // namespace collimate::tensor
