#include <cstring>

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/blocking.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/ops/linear.h"
#include "collimate/tensor/scratch_need.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kTaskRows = 126;                 // a multiple of both tile heights, 6 and 14
constexpr int64_t kTaskRowsTransposed = 252;       // larger, so that longer runs of each row are read
constexpr int64_t kCachedPanels = 12;              // panels whose block of depth stays in the second-level cache
constexpr int64_t kSlabFloats = int64_t{1} << 20;  // floats of the right operand, packed at a time for all tasks
constexpr int64_t kSerialGradientWork = int64_t{1} << 18;

// A Product is out [m, n] (+)= left [m, depth] right [depth, n], both fp32 in memory; left may be transposed, [depth,
// m].
struct Product {
  ComputeType type;
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

bool is_bf16(const Product& p) { return is_bf16(p.type); }

int64_t padded_columns(const Product& p) { return ceil_div(p.n, kPanel) * kPanel; }

// Returns whether sums live in `out` itself, which they do where it has room for whole panels; else they live in
// scratch. In both a chain that accumulates begins at the old value.
bool direct(const Product& p) { return p.n % kPanel == 0; }

// A Slab is a range of depth whose right operand is packed block by block, each block as [panel][depth][32]. bf16
// depths are padded to whole steps, which only the last block needs.
struct Slab {
  int64_t begin, end;
  float* right;
};

struct DepthBlock {
  int64_t begin, depth;
  int64_t packed;  // the block's depth in memory, with padding
};

DepthBlock depth_block(const Product& p, const Slab& slab, int64_t begin) {
  const int64_t depth = std::min(kDepthBlock, slab.end - begin);
  return {begin, depth, is_bf16(p) ? padded_depth(depth) : depth};
}

// Returns the block's packed columns from `column` on.
void* right_at(const Product& p, const Slab& slab, const DepthBlock& block, int64_t column) {
  const int64_t elements = (block.begin - slab.begin) * padded_columns(p) + column * block.packed;
  if (is_bf16(p)) return reinterpret_cast<uint16_t*>(slab.right) + elements;
  return slab.right + elements;
}

// Packs panels [begin, end) of the slab, counted block by block.
void pack_panels(const Product& p, const GemmKernels& kernels, const Slab& slab, int64_t begin, int64_t end) {
  const int64_t panels = ceil_div(p.n, kPanel);
  for (int64_t i = begin; i < end; ++i) {
    const DepthBlock block = depth_block(p, slab, slab.begin + i / panels * kDepthBlock);
    const int64_t column = i % panels * kPanel, columns = std::min(kPanel, p.n - column);
    const float* from = p.right + block.begin * p.right_stride + column;
    void* to = right_at(p, slab, block, column);
    if (is_bf16(p)) {
      kernels.pack_right_bf16(from, p.right_stride, block.depth, columns, static_cast<uint16_t*>(to));
    } else {
      kernels.pack_right(from, p.right_stride, block.depth, columns, static_cast<float*>(to));
    }
  }
}

// PackedLeft is the rows of one block of depth, packed into scratch, and the block function of the kernels that reads
// them.
struct PackedLeft {
  const float* data;
  void (*block)(const GemmBlock&);
};

PackedLeft pack_left(const Product& p, const GemmKernels& kernels, const DepthBlock& block, int64_t row, int64_t rows) {
  const float* from =
      p.left_transposed ? p.left + block.begin * p.left_stride + row : p.left + row * p.left_stride + block.begin;
  if (is_bf16(p)) {
    const Bf16Kernels& bf16 = kernels.bf16(p.type);
    float* to = scratch(ScratchSlot::kLeft, rows * bf16.row_floats);
    (p.left_transposed ? bf16.pack_columns : bf16.pack_rows)(from, p.left_stride, rows, block.depth, to);
    return {to, bf16.block};
  }
  if (p.left_transposed) {
    float* to = scratch(ScratchSlot::kLeft, ceil_div(rows, kernels.tile_rows) * kernels.tile_stride * kDepthBlock);
    kernels.pack_columns(from, p.left_stride, rows, block.depth, to);
    return {to, kernels.block_columns};
  }
  float* to = scratch(ScratchSlot::kLeft, rows * kLeftStride);
  kernels.pack_rows(from, p.left_stride, rows, block.depth, to);
  return {to, kernels.block_rows};
}

// Adds the products of one block of depth, over all columns, for rows whose sums are at block.sum.
void add_depth_block(const Product& p, const GemmKernels& kernels, const Slab& slab, int64_t row, int64_t at,
                     GemmBlock block) {
  const DepthBlock depth = depth_block(p, slab, at);
  const PackedLeft left = pack_left(p, kernels, depth, row, block.rows);
  block.left = left.data;
  block.depth = depth.packed;
  block.first = at == 0 && !p.accumulate;
  block.panel_stride = depth.packed * kPanel;
  float* sum = block.sum;
  const int64_t panels = ceil_div(p.n, kPanel);
  for (int64_t panel = 0; panel < panels; panel += kCachedPanels) {
    block.panels = std::min(kCachedPanels, panels - panel);
    block.right = right_at(p, slab, depth, panel * kPanel);
    block.sum = sum + panel * kPanel;
    left.block(block);
  }
}

void run_task(const Product& p, const GemmKernels& kernels, const Slab& slab, int64_t row, int64_t rows) {
  GemmBlock block;
  block.rows = rows;
  block.sum_stride = direct(p) ? p.out_stride : padded_columns(p);
  block.sum = direct(p) ? p.out + row * p.out_stride : scratch(ScratchSlot::kSum, rows * block.sum_stride);
  for (int64_t r = 0; r < rows && p.accumulate && !direct(p); ++r)
    std::memcpy(block.sum + r * block.sum_stride, p.out + (row + r) * p.out_stride,
                static_cast<size_t>(p.n) * sizeof(float));
  for (int64_t at = slab.begin; at < slab.end; at += kDepthBlock) add_depth_block(p, kernels, slab, row, at, block);
  if (direct(p)) return;
  GemmFinish f;
  f.sum = block.sum;
  f.sum_stride = block.sum_stride;
  f.rows = rows;
  f.columns = p.n;
  f.out = p.out + row * p.out_stride;
  f.out_stride = p.out_stride;
  kernels.finish(f);
}

// Returns the depth of a slab for n columns. A product whose sums are in scratch has only one slab.
int64_t slab_depth(int64_t n, int64_t depth) {
  const int64_t most = std::max<int64_t>(1, kSlabFloats / (ceil_div(n, kPanel) * kPanel) / kDepthBlock) * kDepthBlock;
  return n % kPanel == 0 ? std::min(most, depth) : depth;
}

void run(const Exec& given, const Product& p) {
  if (p.m == 0 || p.n == 0 || p.depth == 0) return;
  const GemmKernels& kernels = gemm_kernels();
  const Exec exec = p.m * p.n * p.depth < kSerialGradientWork ? Exec{} : given;
  const int64_t step = slab_depth(p.n, p.depth);
  const int64_t floats = padded_columns(p) * (is_bf16(p) ? padded_depth(step) / 2 : step);
  float* right = scratch(ScratchSlot::kRight, floats);
  const TaskGrid grid =
      row_grid(p.m, kernels.tile_rows, p.left_transposed ? kTaskRowsTransposed : kTaskRows, exec.threads());
  for (int64_t at = 0; at < p.depth; at += step) {
    const Slab slab{at, std::min(p.depth, at + step), right};
    const int64_t panels = ceil_div(slab.end - at, kDepthBlock) * ceil_div(p.n, kPanel);
    exec.parallel_for(panels, 2, [&](int64_t begin, int64_t end) { pack_panels(p, kernels, slab, begin, end); });
    exec.parallel_for(grid.row_tasks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) run_task(p, kernels, slab, grid.row(t), grid.row(t + 1) - grid.row(t));
    });
  }
}

// Computes db [n] += the column sums of dy, each summed from zero over ascending rows.
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

int64_t linear_backward_scratch_bytes(int64_t rows, int64_t n, int64_t k) {
  const int64_t depth = std::max(slab_depth(k, n), slab_depth(k, rows));
  return depth * ceil_div(k, kPanel) * kPanel * static_cast<int64_t>(sizeof(float));
}

void add_linear_backward_scratch(const LinearSize& size, ScratchNeed& need) {
  const GemmKernels& kernels = gemm_kernels();
  need.in_caller(ScratchSlot::kRight,
                 linear_backward_scratch_bytes(size.rows, size.n, size.k) / static_cast<int64_t>(sizeof(float)));
  const int64_t rows = std::min(size.rows, kTaskRows), columns = std::min(size.n, kTaskRowsTransposed);
  const int64_t tiles = ceil_div(columns, kernels.tile_rows) * kernels.tile_stride * kDepthBlock;
  need.in_each(ScratchSlot::kLeft, std::max({rows * kLeftStride, columns * kLeftStride, tiles}));
  if (size.k % kPanel != 0)
    need.in_each(ScratchSlot::kSum, std::max(rows, columns) * ceil_div(size.k, kPanel) * kPanel);
}

void cpu::linear_grad_input(const Exec& exec, ComputeType type, const float* dy, int64_t dy_stride, int64_t rows,
                            const float* w, int64_t n, int64_t k, float* dx, int64_t dx_stride, bool accumulate) {
  COLLIMATE_CHECK(dy_stride >= n && dx_stride >= k, "n {} k {} strides {} {}", n, k, dy_stride, dx_stride);
  run(exec, {type, dy, dy_stride, false, w, k, rows, k, n, dx, dx_stride, accumulate});
}

void cpu::linear_grad_weight(const Exec& exec, ComputeType type, const float* dy, int64_t dy_stride, const float* x,
                             int64_t x_stride, int64_t rows, int64_t n, int64_t k, float* dw, float* db) {
  COLLIMATE_CHECK(dy_stride >= n && x_stride >= k, "n {} k {} strides {} {}", n, k, dy_stride, x_stride);
  run(exec, {type, dy, dy_stride, true, x, x_stride, n, k, rows, dw, k, true});
  if (db != nullptr) add_column_sums(exec, dy, dy_stride, rows, n, db);
}

void linear_grad_input(const Exec& exec, ComputeType type, const float* dy, int64_t dy_stride, int64_t rows,
                       const float* w, int64_t n, int64_t k, float* dx, int64_t dx_stride, bool accumulate) {
  exec.operations().linear_grad_input(exec, type, dy, dy_stride, rows, w, n, k, dx, dx_stride, accumulate);
}

void linear_grad_weight(const Exec& exec, ComputeType type, const float* dy, int64_t dy_stride, const float* x,
                        int64_t x_stride, int64_t rows, int64_t n, int64_t k, float* dw, float* db) {
  exec.operations().linear_grad_weight(exec, type, dy, dy_stride, x, x_stride, rows, n, k, dw, db);
}

}  // namespace collimate::tensor
