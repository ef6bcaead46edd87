#include "collimate/tensor/ops/linear.h"

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/blocking.h"
#include "collimate/tensor/kernels/scratch.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kMaxTaskRows = 168;
constexpr int64_t kMaxTaskColumns = 256;
constexpr int64_t kSerialWork = int64_t{1} << 17;  // multiply-adds below which a second thread costs more than it gives

struct Call {
  const float* x;
  int64_t x_stride;
  int64_t rows;
  const LinearPanels& panels;
  float* y;
  int64_t y_stride;
  const LinearOptions& options;
  const GemmKernels& kernels;
  const float* packed = nullptr;  // all of x, packed once by the caller when it has few rows
};

bool is_bf16(const Call& c) { return c.panels.type == PanelType::kBf16; }

// Floats between panels' beginnings, and where a depth begins in a panel, in elements.
int64_t panel_stride(const Call& c) {
  const int chunks = c.panels.reduction_chunks;
  return (is_bf16(c) ? padded_begin(c.panels.k, chunks, chunks) : c.panels.k) * kPanel;
}

const void* panel_at(const Call& c, int64_t panel, int chunk, int64_t offset) {
  const int chunks = c.panels.reduction_chunks;
  if (is_bf16(c)) {
    const int64_t depth = padded_begin(c.panels.k, chunks, chunk) + offset;
    return static_cast<const uint16_t*>(c.panels.data) + panel * panel_stride(c) + depth * kPanel;
  }
  const int64_t depth = chunk_begin(c.panels.k, chunks, chunk) + offset;
  return static_cast<const float*>(c.panels.data) + panel * panel_stride(c) + depth * kPanel;
}

void pack_left(const Call& c, int64_t row, int64_t rows, int64_t begin, int64_t depth, float* to) {
  const float* from = c.x + row * c.x_stride + begin;
  (is_bf16(c) ? c.kernels.pack_rows_bf16 : c.kernels.pack_rows)(from, c.x_stride, rows, depth, to);
}

// visit(chunk, block's offset in the chunk, depth, running number of the block)
template <typename Visit>
void for_each_depth_block(const LinearPanels& panels, const Visit& visit) {
  int64_t number = 0;
  for (int chunk = 0; chunk < panels.reduction_chunks; ++chunk) {
    const int64_t begin = chunk_begin(panels.k, panels.reduction_chunks, chunk);
    const int64_t end = chunk_begin(panels.k, panels.reduction_chunks, chunk + 1);
    for (int64_t at = begin; at < end; at += kDepthBlock) {
      visit(chunk, at - begin, std::min(kDepthBlock, end - at), number++);
    }
  }
}

void finish_task(const Call& c, const GemmBlock& block, float* sums, int64_t row, int64_t column) {
  GemmFinish f;
  f.sum = sums;
  f.sum_stride = block.sum_stride;
  f.chunk_stride = block.rows * block.sum_stride;
  f.chunks = c.panels.reduction_chunks;
  f.rows = block.rows;
  f.columns = std::min(block.panels * kPanel, c.panels.n - column);
  f.bias = c.options.bias == nullptr ? nullptr : c.options.bias + column;
  f.accumulate = c.options.accumulate;
  f.out = c.y + row * c.y_stride + column;
  f.out_stride = c.y_stride;
  c.kernels.finish(f);
}

// Rows [row, row + rows) by panels [panel, panel + panels).
void run_task(const Call& c, int64_t row, int64_t rows, int64_t panel, int64_t panels) {
  GemmBlock block;
  block.rows = rows;
  block.panels = panels;
  block.panel_stride = panel_stride(c);
  block.sum_stride = panels * kPanel;
  const int64_t chunk_floats = rows * block.sum_stride;
  float* sums = scratch(ScratchSlot::kSum, chunk_floats * c.panels.reduction_chunks);
  float* left = c.packed != nullptr ? nullptr : scratch(ScratchSlot::kLeft, rows * kLeftStride);
  for_each_depth_block(c.panels, [&](int chunk, int64_t offset, int64_t depth, int64_t number) {
    if (left != nullptr) {
      pack_left(c, row, rows, chunk_begin(c.panels.k, c.panels.reduction_chunks, chunk) + offset, depth, left);
    }
    block.left = left != nullptr ? left : c.packed + number * rows * kLeftStride;
    block.right = panel_at(c, panel, chunk, offset);
    block.depth = is_bf16(c) ? padded_depth(depth) : depth;
    block.sum = sums + chunk * chunk_floats;
    block.first = offset == 0;
    (is_bf16(c) ? c.kernels.block_bf16 : c.kernels.block_rows)(block);
  });
  finish_task(c, block, sums, row, panel * kPanel);
}

// Few rows: x is packed once, tasks are groups of panels.
void run_few_rows(const Exec& exec, Call& c) {
  int64_t blocks = 0;
  for_each_depth_block(c.panels, [&](int, int64_t, int64_t, int64_t) { ++blocks; });
  float* packed = scratch(ScratchSlot::kCaller, blocks * c.rows * kLeftStride);
  for_each_depth_block(c.panels, [&](int chunk, int64_t offset, int64_t depth, int64_t number) {
    const int64_t begin = chunk_begin(c.panels.k, c.panels.reduction_chunks, chunk) + offset;
    pack_left(c, 0, c.rows, begin, depth, packed + number * c.rows * kLeftStride);
  });
  c.packed = packed;
  const int64_t panels = ceil_div(c.panels.n, kPanel);
  const int64_t work_per_panel = c.rows * kPanel * c.panels.k;
  const int64_t grain = std::max<int64_t>(4, ceil_div(kSerialWork / 2, work_per_panel));
  exec.parallel_for(panels, grain, [&](int64_t begin, int64_t end) {
    constexpr int64_t kGroup = kMaxTaskColumns / kPanel;
    for (int64_t p = begin; p < end; p += kGroup) run_task(c, 0, c.rows, p, std::min(kGroup, end - p));
  });
}

void run_many_rows(const Exec& exec, const Call& c) {
  const bool small = c.rows * c.panels.n * c.panels.k < kSerialWork;
  const TaskGrid grid =
      task_grid(c.rows, c.panels.n, c.kernels.tile_rows, kMaxTaskRows, kMaxTaskColumns, small ? 1 : exec.threads());
  exec.parallel_for(grid.tasks(), small ? grid.tasks() : 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / grid.column_tasks * grid.rows;
      const int64_t column = t % grid.column_tasks * grid.columns;
      run_task(c, row, std::min(grid.rows, c.rows - row), column / kPanel,
               ceil_div(std::min(grid.columns, c.panels.n - column), kPanel));
    }
  });
}

}  // namespace

void linear(const Exec& exec, const float* x, int64_t x_stride, int64_t rows, const LinearPanels& panels, float* y,
            int64_t y_stride, const LinearOptions& options) {
  COLLIMATE_CHECK(panels.data != nullptr && x_stride >= panels.k && y_stride >= panels.n, "k {} n {} strides {} {}",
                  panels.k, panels.n, x_stride, y_stride);
  if (rows == 0) return;
  Call call{x, x_stride, rows, panels, y, y_stride, options, gemm_kernels()};
  if (rows <= 16) {
    run_few_rows(exec, call);
  } else {
    run_many_rows(exec, call);
  }
}

}  // namespace collimate::tensor
