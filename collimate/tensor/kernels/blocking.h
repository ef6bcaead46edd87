#pragma once

#include <algorithm>
#include <cstdint>

#include "collimate/tensor/kernels/gemm.h"

namespace collimate::tensor {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A TaskGrid cuts a product's result into row_tasks x column_tasks tasks of nearly equal size, rows in whole tiles and
// columns in whole panels. It is chosen for speed only: no element's bits depend on it.
struct TaskGrid {
  int64_t m = 0, tile_rows = 1, row_tasks = 1;
  int64_t panels = 0, column_tasks = 1;

  int64_t tasks() const { return row_tasks * column_tasks; }
  // row(i) is the first row of row task i, panel(i) the first panel of column task i.
  int64_t row(int64_t i) const { return std::min(m, ceil_div(m, tile_rows) * i / row_tasks * tile_rows); }
  int64_t panel(int64_t i) const { return panels * i / column_tasks; }
};

// Returns row tasks of at most max_rows rows, smaller ones until every thread has several.
inline TaskGrid row_grid(int64_t m, int64_t tile_rows, int64_t max_rows, int threads) {
  TaskGrid grid{m, tile_rows, ceil_div(m, max_rows)};
  if (threads == 1) return grid;
  constexpr int64_t kLeastTiles = 4;
  const int64_t most = std::max<int64_t>(1, ceil_div(m, tile_rows) / kLeastTiles);
  grid.row_tasks = std::max(grid.row_tasks, std::min(int64_t{4} * threads, most));
  if (grid.row_tasks > 1) grid.row_tasks = ceil_div(grid.row_tasks, threads) * threads;
  return grid;
}

// Does the same, and makes column tasks where row tasks alone are too few for the threads.
inline TaskGrid task_grid(int64_t m, int64_t n, int64_t tile_rows, int64_t max_rows, int threads) {
  TaskGrid grid = row_grid(m, tile_rows, max_rows, threads);
  grid.panels = ceil_div(n, kPanel);
  const int64_t wanted = int64_t{4} * threads;
  if (threads > 1 && grid.row_tasks < wanted)
    grid.column_tasks = std::min(ceil_div(wanted, grid.row_tasks), std::max<int64_t>(1, grid.panels / 2));
  return grid;
}

// Returns where reduction chunk c begins in depth; chunk c covers [k*c/chunks, k*(c+1)/chunks).
inline int64_t chunk_begin(int64_t k, int chunks, int chunk) { return k * chunk / chunks; }

// padded_begin() returns the depth at which a chunk begins in a bf16 panel, where padded_depth() pads every chunk to a
// multiple of 32.
inline int64_t padded_depth(int64_t depth) { return ceil_div(depth, kBf16Step) * kBf16Step; }
inline int64_t padded_begin(int64_t k, int chunks, int chunk) {
  int64_t begin = 0;
  for (int c = 0; c < chunk; ++c) begin += padded_depth(chunk_begin(k, chunks, c + 1) - chunk_begin(k, chunks, c));
  return begin;
}

}  // namespace collimate::tensor
