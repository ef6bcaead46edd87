#include "collimate/base/error.h"
#include "collimate/tensor/kernels/blocking.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kMaxTaskRows = 252;  // a multiple of both tile heights; the right operand is packed once per task
constexpr int64_t kMaxTaskColumns = 256;
constexpr int64_t kSerialWork = int64_t{1} << 18;

// out [m, n] (+)= left [m, depth] right [depth, n], both fp32; left may be given transposed, as [depth, m].
struct Product {
  const float* left;
  int64_t left_stride;
  bool left_transposed;
  const float* right;
  int64_t right_stride;
  int64_t m, n, depth;
  float* out;
  int64_t out_stride;
  bool accumulate;
};

void add_depth_block(const Product& p, const GemmKernels& kernels, int64_t row, int64_t column, int64_t at,
                     GemmBlock& block) {
  block.depth = std::min(kDepthBlock, p.depth - at);
  block.first = at == 0;
  float* left =
      scratch(ScratchSlot::kLeft, ceil_div(block.rows, kernels.tile_rows) * kernels.tile_rows * kLeftStride * 2);
  float* right = scratch(ScratchSlot::kRight, block.panels * kPanel * kDepthBlock);
  block.left = left;
  block.right = right;
  block.panel_stride = block.depth * kPanel;
  const int64_t columns = std::min(block.panels * kPanel, p.n - column);
  kernels.pack_right(p.right + at * p.right_stride + column, p.right_stride, block.depth, columns, right);
  if (p.left_transposed) {
    kernels.pack_columns(p.left + at * p.left_stride + row, p.left_stride, block.rows, block.depth, left);
    kernels.block_columns(block);
  } else {
    kernels.pack_rows(p.left + row * p.left_stride + at, p.left_stride, block.rows, block.depth, left);
    kernels.block_rows(block);
  }
}

void run_task(const Product& p, const GemmKernels& kernels, int64_t row, int64_t rows, int64_t column,
              int64_t columns) {
  GemmBlock block;
  block.rows = rows;
  block.panels = ceil_div(columns, kPanel);
  block.sum_stride = block.panels * kPanel;
  block.sum = scratch(ScratchSlot::kSum, rows * block.sum_stride);
  for (int64_t at = 0; at < p.depth; at += kDepthBlock) add_depth_block(p, kernels, row, column, at, block);
  GemmFinish f;
  f.sum = block.sum;
  f.sum_stride = block.sum_stride;
  f.rows = rows;
  f.columns = columns;
  f.accumulate = p.accumulate;
  f.out = p.out + row * p.out_stride + column;
  f.out_stride = p.out_stride;
  kernels.finish(f);
}

void run(const Exec& exec, const Product& p) {
  if (p.m == 0 || p.n == 0 || p.depth == 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const bool small = p.m * p.n * p.depth < kSerialWork;
  const TaskGrid grid =
      task_grid(p.m, p.n, kernels.tile_rows, kMaxTaskRows, kMaxTaskColumns, small ? 1 : exec.threads());
  exec.parallel_for(grid.tasks(), small ? grid.tasks() : 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / grid.column_tasks * grid.rows;
      const int64_t column = t % grid.column_tasks * grid.columns;
      run_task(p, kernels, row, std::min(grid.rows, p.m - row), column, std::min(grid.columns, p.n - column));
    }
  });
}

// db [n] += column sums, rows ascending from zero.
void add_column_sums(const Exec& exec, const float* dy, int64_t stride, int64_t rows, int64_t n, float* db) {
  constexpr int64_t kStrip = 64;
  exec.parallel_for(ceil_div(n, kStrip), 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin * kStrip; c < std::min(n, end * kStrip); c += kStrip) {
      const int64_t width = std::min(kStrip, n - c);
      float sum[kStrip] = {};
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < width; ++i) sum[i] += dy[r * stride + c + i];
      }
      for (int64_t i = 0; i < width; ++i) db[c + i] += sum[i];
    }
  });
}

}  // namespace

void linear_grad_input(const Exec& exec, const float* dy, int64_t dy_stride, int64_t rows, const float* w, int64_t n,
                       int64_t k, float* dx, int64_t dx_stride, bool accumulate) {
  COLLIMATE_CHECK(dy_stride >= n && dx_stride >= k, "n {} k {} strides {} {}", n, k, dy_stride, dx_stride);
  run(exec, {dy, dy_stride, false, w, k, rows, k, n, dx, dx_stride, accumulate});
}

void linear_grad_weight(const Exec& exec, const float* dy, int64_t dy_stride, const float* x, int64_t x_stride,
                        int64_t rows, int64_t n, int64_t k, float* dw, float* db) {
  COLLIMATE_CHECK(dy_stride >= n && x_stride >= k, "n {} k {} strides {} {}", n, k, dy_stride, x_stride);
  run(exec, {dy, dy_stride, true, x, x_stride, n, k, rows, dw, k, true});
  if (db != nullptr) add_column_sums(exec, dy, dy_stride, rows, n, db);
}

}  // namespace collimate::tensor
