#pragma once

#include <cstdint>

#include "collimate/tensor/kernels/table.h"

namespace collimate::tensor {

// NormStrides say where rows are: row r begins at of(r). Rows of `width` floats lie one behind another, or in groups of
// `group` rows that begin `stride` floats apart.
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

// One call sums at most so many columns of parameter gradients.
constexpr int64_t kNormStrip = 128;

// NormKernels work on ranges of rows and, for the gradients of parameters, on ranges of at most kNormStrip columns.
struct NormKernels {
  void (*rms)(const NormForward& f, int64_t begin, int64_t end);
  void (*layer)(const NormForward& f, int64_t begin, int64_t end);
  void (*rms_backward)(const NormBackward& b, int64_t begin, int64_t end);
  void (*layer_backward)(const NormBackward& b, int64_t begin, int64_t end);
  void (*parameter_gradients)(const NormBackward& b, int64_t column_begin, int64_t column_end);
};

COLLIMATE_KERNEL_TABLE(NormKernels, kNorm, norm_kernels);

}  // namespace collimate::tensor
