#include "collimate/tensor/ops/dropout.h"

#include <cmath>

#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/pointwise.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {

void cpu::dropout(const Exec& exec, const Dropout& dropout, const float* x, int64_t rows, int64_t width, float* y,
                  bool accumulate) {
  const DropoutRows all{.low = dropout.keys,
                        .high = dropout.keys + rows,
                        .layer = dropout.layer,
                        .dropped_below = static_cast<uint32_t>(std::ldexp(double{dropout.rate}, 32)),
                        .factor = 1.0F / (1.0F - dropout.rate),
                        .first_column = dropout.first_column,
                        .x = x,
                        .width = width,
                        .y = y,
                        .accumulate = accumulate};
  constexpr int64_t kDraws = 8;  // a draw costs as much as reading and writing so many floats
  exec.parallel_for(rows, row_grain(kDraws * width),
                    [&](int64_t begin, int64_t end) { pointwise_kernels().dropout(all, begin, end); });
}

void dropout(const Exec& exec, const Dropout& dropout, const float* x, int64_t rows, int64_t width, float* y,
             bool accumulate) {
  exec.operations().dropout(exec, dropout, x, rows, width, y, accumulate);
}

}  // namespace collimate::tensor
