#include "collimate/tensor/ops/rope.h"

#include <string>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/pointwise.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

void turn(const Exec& exec, const Rope& r, int64_t rows, const RopeTable& table) {
  COLLIMATE_CHECK(table.rotary_dim % 2 == 0 && table.rotary_dim <= r.head_dim, "rotary_dim {}", table.rotary_dim);
  for (int64_t row = 0; row < rows; ++row) {
    if (r.positions[row] < 0 || r.positions[row] >= table.positions) {
      throw base::InputError(base::expectation("rope", "positions below " + std::to_string(table.positions),
                                               std::to_string(r.positions[row]), "a shorter sequence"));
    }
  }
  const PointwiseKernels& kernels = pointwise_kernels();
  exec.parallel_for(rows, row_grain(int64_t{r.heads} * r.head_dim),
                    [&](int64_t begin, int64_t end) { kernels.rope(r, begin, end); });
}

}  // namespace

void cpu::rope(const Exec& exec, float* x, int64_t x_stride, int64_t rows, int heads, int head_dim,
               const int32_t* positions, const RopeTable& table) {
  turn(exec, {x, x_stride, heads, head_dim, table.rotary_dim / 2, positions, table.cos, table.sin, false}, rows, table);
  base::fault_rows("rope", x, rows, int64_t{heads} * head_dim, x_stride);
}

void cpu::rope_backward(const Exec& exec, float* dx, int64_t dx_stride, int64_t rows, int heads, int head_dim,
                        const int32_t* positions, const RopeTable& table) {
  turn(exec, {dx, dx_stride, heads, head_dim, table.rotary_dim / 2, positions, table.cos, table.sin, true}, rows,
       table);
}

void rope(const Exec& exec, float* x, int64_t x_stride, int64_t rows, int heads, int head_dim, const int32_t* positions,
          const RopeTable& table) {
  exec.operations().rope(exec, x, x_stride, rows, heads, head_dim, positions, table);
}

void rope_backward(const Exec& exec, float* dx, int64_t dx_stride, int64_t rows, int heads, int head_dim,
                   const int32_t* positions, const RopeTable& table) {
  exec.operations().rope_backward(exec, dx, dx_stride, rows, heads, head_dim, positions, table);
}

}  // namespace collimate::tensor
