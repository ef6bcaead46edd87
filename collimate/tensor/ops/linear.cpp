#include "collimate/tensor/ops/linear.h"

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/blocking.h"
#include "collimate/tensor/kernels/scratch.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/scratch_need.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kFewRows = 16;
constexpr int64_t kMaxTaskRows = 126;
constexpr int64_t kGroupPanels = 8;                // panels that are worked on before the left operand is read again
constexpr int64_t kPackGrain = int64_t{1} << 14;   // floats of x; packing more than these is worth a second thread
constexpr int64_t kSerialWork = int64_t{1} << 17;  // multiply-adds; below them a second thread costs more than it saves

struct Call {
  const float* x;
  int64_t x_stride;
  int64_t rows;
  const LinearPanels& panels;
  float* y;
  int64_t y_stride;
  const LinearOptions& options;
  const GemmKernels& kernels;
};

bool is_bf16(const Call& c) { return is_bf16(c.panels.type); }

// panel_stride() returns the elements from the beginning of one panel to that of the next; panel_at() returns where a
// depth of a chunk begins in a panel.
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
  const int64_t element = panel * panel_stride(c) + (chunk_begin(c.panels.k, chunks, chunk) + offset) * kPanel;
  if (c.panels.type == ComputeType::kInt8) return static_cast<const int8_t*>(c.panels.data) + element;
  return static_cast<const float*>(c.panels.data) + element;
}

// Calls visit(chunk, offset of the block in the chunk, depth of the block, running number of the block).
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

int64_t depth_blocks(const LinearPanels& panels) {
  int64_t blocks = 0;
  for_each_depth_block(panels, [&](int, int64_t, int64_t, int64_t) { ++blocks; });
  return blocks;
}

// Returns the most rows that the calling thread packs for all: the few of run_few_rows(), or those of the largest call
// with at most `rows` rows whose grid has several column tasks. More rows make no fewer row tasks, hence no more of
// these.
int64_t rows_packed_for_all(int64_t rows, int64_t n, int threads) {
  const auto shared = [&](int64_t m) {
    return task_grid(m, n, gemm_kernels().tile_rows, kMaxTaskRows, threads).column_tasks > 1;
  };
  int64_t least = std::min(rows, kFewRows), most = rows;
  while (least < most) {
    const int64_t middle = (least + most + 1) / 2;
    if (shared(middle))
      least = middle;
    else
      most = middle - 1;
  }
  return least;
}

// Packs rows [row, row + rows) of x, one depth block after another; block b begins at to + b * block_stride.
void pack_left(const Call& c, int64_t row, int64_t rows, float* to, int64_t block_stride) {
  const auto pack = is_bf16(c) ? c.kernels.bf16(c.panels.type).pack_rows : c.kernels.pack_rows;
  for_each_depth_block(c.panels, [&](int chunk, int64_t offset, int64_t depth, int64_t number) {
    const int64_t begin = chunk_begin(c.panels.k, c.panels.reduction_chunks, chunk) + offset;
    pack(c.x + row * c.x_stride + begin, c.x_stride, rows, depth, to + number * block_stride);
  });
}

void finish_group(const Call& c, const GemmBlock& block, float* sums, int64_t row, int64_t column) {
  GemmFinish f;
  f.sum = sums;
  f.sum_stride = block.sum_stride;
  f.chunk_stride = block.rows * block.sum_stride;
  f.chunks = c.panels.reduction_chunks;
  f.rows = block.rows;
  f.columns = std::min(block.panels * kPanel, c.panels.n - column);
  f.scale = c.panels.scales == nullptr ? nullptr : c.panels.scales + column;
  f.bias = c.options.bias == nullptr ? nullptr : c.options.bias + column;
  f.accumulate = c.options.accumulate;
  f.out = c.y + row * c.y_stride + column;
  f.out_stride = c.y_stride;
  c.kernels.finish(f);
}

// Left holds packed rows, and the rows of y to which their products go.
struct Left {
  const float* data;  // the first depth block
  int64_t block_stride;
  int64_t row, rows;
};

auto block_of(const Call& c) {
  if (is_bf16(c)) return c.kernels.bf16(c.panels.type).block;
  return c.panels.type == ComputeType::kInt8 ? c.kernels.block_rows_int8 : c.kernels.block_rows;
}

// Multiplies one group of panels. Sums go straight into y where nothing else is to be done to them, else through
// scratch.
void run_group(const Call& c, const Left& left, int64_t panel, int64_t panels) {
  const int chunks = c.panels.reduction_chunks;
  const bool direct = chunks == 1 && c.options.bias == nullptr && c.panels.scales == nullptr && !c.options.accumulate &&
                      (panel + panels) * kPanel <= c.panels.n;
  const auto run = block_of(c);
  GemmBlock block;
  block.rows = left.rows;
  block.panels = panels;
  block.panel_stride = panel_stride(c);
  block.sum_stride = direct ? c.y_stride : panels * kPanel;
  const int64_t chunk_floats = left.rows * block.sum_stride;
  float* sums =
      direct ? c.y + left.row * c.y_stride + panel * kPanel : scratch(ScratchSlot::kSum, chunk_floats * chunks);
  for_each_depth_block(c.panels, [&](int chunk, int64_t offset, int64_t depth, int64_t number) {
    block.left = left.data + number * left.block_stride;
    block.right = panel_at(c, panel, chunk, offset);
    block.depth = is_bf16(c) ? padded_depth(depth) : depth;
    block.sum = sums + chunk * chunk_floats;
    block.first = offset == 0;
    run(block);
  });
  if (!direct) finish_group(c, block, sums, left.row, panel * kPanel);
}

void run_panels(const Call& c, const Left& left, int64_t begin, int64_t end) {
  const int64_t groups = ceil_div(end - begin, kGroupPanels);
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = begin + (end - begin) * g / groups, last = begin + (end - begin) * (g + 1) / groups;
    run_group(c, left, first, last - first);
  }
}

// Handles few rows: x is packed once, and tasks are groups of panels.
void run_few_rows(const Exec& exec, const Call& c) {
  const Left left{scratch(ScratchSlot::kCaller, depth_blocks(c.panels) * c.rows * kLeftStride), c.rows * kLeftStride, 0,
                  c.rows};
  pack_left(c, 0, c.rows, const_cast<float*>(left.data), left.block_stride);
  const int64_t panels = ceil_div(c.panels.n, kPanel);
  const int64_t work_per_panel = c.rows * kPanel * c.panels.k;
  const int64_t grain = std::max<int64_t>(4, ceil_div(kSerialWork / 2, work_per_panel));
  exec.parallel_for(panels, grain, [&](int64_t begin, int64_t end) { run_panels(c, left, begin, end); });
}

// Handles a grid in which several tasks read the same rows: all threads pack x first.
void run_columns(const Exec& exec, const Call& c, const TaskGrid& grid) {
  const int64_t width = is_bf16(c) ? c.kernels.bf16(c.panels.type).row_floats : kLeftStride,
                stride = c.rows * kLeftStride;
  float* packed = scratch(ScratchSlot::kCaller, depth_blocks(c.panels) * stride);
  exec.parallel_for(c.rows, std::max<int64_t>(1, kPackGrain / c.panels.k), [&](int64_t begin, int64_t end) {
    pack_left(c, begin, end - begin, packed + begin * width, stride);
  });
  exec.parallel_for(grid.tasks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t / grid.column_tasks, j = t % grid.column_tasks, row = grid.row(i);
      run_panels(c, {packed + row * width, stride, row, grid.row(i + 1) - row}, grid.panel(j), grid.panel(j + 1));
    }
  });
}

// Handles a grid in which each task packs its own rows once and walks all panels.
void run_rows(const Exec& exec, const Call& c, const TaskGrid& grid) {
  exec.parallel_for(grid.tasks(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = grid.row(t), rows = grid.row(t + 1) - row, stride = rows * kLeftStride;
      float* packed = scratch(ScratchSlot::kLeft, depth_blocks(c.panels) * stride);
      pack_left(c, row, rows, packed, stride);
      run_panels(c, {packed, stride, row, rows}, 0, grid.panels);
    }
  });
}

void run_many_rows(const Exec& exec, const Call& c) {
  const bool small = c.rows * c.panels.n * c.panels.k < kSerialWork;
  const TaskGrid grid = task_grid(c.rows, c.panels.n, c.kernels.tile_rows, kMaxTaskRows, small ? 1 : exec.threads());
  if (grid.column_tasks > 1) {
    run_columns(exec, c, grid);
  } else {
    run_rows(small ? Exec{} : exec, c, grid);
  }
}

}  // namespace

void add_linear_scratch(const LinearSize& size, ScratchNeed& need) {
  LinearPanels panels;
  panels.k = size.k;
  panels.reduction_chunks = size.reduction_chunks;
  const int64_t row_floats = depth_blocks(panels) * kLeftStride, task_rows = std::min(size.rows, kMaxTaskRows);
  need.in_caller(ScratchSlot::kCaller, rows_packed_for_all(size.rows, size.n, need.threads()) * row_floats);
  if (size.rows > kFewRows) need.in_each(ScratchSlot::kLeft, task_rows * row_floats);
  need.in_each(ScratchSlot::kSum,
               task_rows * std::min(ceil_div(size.n, kPanel), kGroupPanels) * kPanel * size.reduction_chunks);
}

void cpu::linear(const Exec& exec, const float* x, int64_t x_stride, int64_t rows, const LinearPanels& panels, float* y,
                 int64_t y_stride, const LinearOptions& options) {
  COLLIMATE_CHECK(panels.data != nullptr && x_stride >= panels.k && y_stride >= panels.n, "k {} n {} strides {} {}",
                  panels.k, panels.n, x_stride, y_stride);
  if (rows == 0) return;
  const Call call{x, x_stride, rows, panels, y, y_stride, options, gemm_kernels()};
  if (rows <= kFewRows) {
    run_few_rows(exec, call);
  } else {
    run_many_rows(exec, call);
  }
  base::fault_rows("linear", y, rows, panels.n, y_stride);
}

void linear(const Exec& exec, const float* x, int64_t x_stride, int64_t rows, const LinearPanels& panels, float* y,
            int64_t y_stride, const LinearOptions& options) {
  exec.operations().linear(exec, x, x_stride, rows, panels, y, y_stride, options);
}

}  // namespace collimate::tensor
