#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// These operations read or write rows [rows, width] with a stride of `stride` floats, and have a factor for each
// column.

// Computes y[r, i] = factors[i] x[r, i]. y may be x.
void scale_columns(const Exec& exec, const float* factors, const float* x, int64_t rows, int64_t width, int64_t stride,
                   float* y);

// ColumnDots are two matrices of equal sizes, whose columns are multiplied.
struct ColumnDots {
  const float* factors = nullptr;  // [width]
  const float* x = nullptr;
  const float* y = nullptr;
  int64_t rows = 0, width = 0, stride = 0;
};
// Computes sums[i] += Σ over r of factors[i] x[r, i] y[r, i]: one chain over ascending rows, which begins with the old
// value.
void add_column_dots(const Exec& exec, const ColumnDots& dots, float* sums);

}  // namespace collimate::tensor
