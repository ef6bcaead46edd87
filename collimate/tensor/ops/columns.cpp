#include "collimate/tensor/ops/columns.h"

#include <algorithm>

#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/pointwise.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {

void cpu::scale_columns(const Exec& exec, const float* factors, const float* x, int64_t rows, int64_t width,
                        int64_t stride, float* y) {
  exec.parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      pointwise_kernels().scale_columns(factors, x + r * stride, width, y + r * stride);
  });
  base::fault_rows("scale_columns", y, rows, width, stride);
}

void cpu::add_column_dots(const Exec& exec, const ColumnDots& dots, float* sums) {
  const int64_t strips = (dots.width + kColumnStrip - 1) / kColumnStrip;
  const DottedColumns all{dots.factors, dots.x, dots.y, dots.rows, dots.stride, sums};
  exec.parallel_for(strips, row_grain(dots.rows * kColumnStrip), [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip)
      pointwise_kernels().add_column_dots(all, strip * kColumnStrip, std::min(dots.width, (strip + 1) * kColumnStrip));
  });
}

void scale_columns(const Exec& exec, const float* factors, const float* x, int64_t rows, int64_t width, int64_t stride,
                   float* y) {
  exec.operations().scale_columns(exec, factors, x, rows, width, stride, y);
}

void add_column_dots(const Exec& exec, const ColumnDots& dots, float* sums) {
  exec.operations().add_column_dots(exec, dots, sums);
}

}  // namespace collimate::tensor
