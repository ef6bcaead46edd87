#pragma once

#include <algorithm>
#include <cstdint>

#include "collimate/tensor/kernels/gemm.h"

namespace collimate::tensor {

// A product's result cut into tasks of `rows` x `columns` elements; columns is a multiple of kPanel. Chosen for speed
// only: no element's bits depend on it.
struct TaskGrid {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_tasks = 0;
  int64_t column_tasks = 0;
  int64_t tasks() const { return row_tasks * column_tasks; }
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// At most max_rows (a multiple of tile_rows) by max_columns each, made smaller until every thread has several tasks.
inline TaskGrid task_grid(int64_t m, int64_t n, int64_t tile_rows, int64_t max_rows, int64_t max_columns, int threads) {
  TaskGrid grid;
  grid.rows = std::min(max_rows, ceil_div(m, tile_rows) * tile_rows);
  grid.columns = std::min(max_columns, ceil_div(n, kPanel) * kPanel);
  const auto count = [&] { return ceil_div(m, grid.rows) * ceil_div(n, grid.columns); };
  const int64_t wanted = threads == 1 ? 1 : int64_t{4} * threads;
  while (count() < wanted && (grid.rows >= 4 * tile_rows || grid.columns > 4 * kPanel)) {
    if (grid.rows >= 4 * tile_rows) {
      grid.rows = ceil_div(grid.rows / 2, tile_rows) * tile_rows;
    } else {
      grid.columns = ceil_div(grid.columns / 2, kPanel) * kPanel;
    }
  }
  grid.row_tasks = ceil_div(m, grid.rows);
  grid.column_tasks = ceil_div(n, grid.columns);
  return grid;
}

// Depth ranges of reduction chunks: [k*c/chunks, k*(c+1)/chunks).
inline int64_t chunk_begin(int64_t k, int chunks, int chunk) { return k * chunk / chunks; }

// Where chunk c begins in a bf16 panel, in depth: every chunk is padded to a multiple of 32.
inline int64_t padded_depth(int64_t depth) { return ceil_div(depth, kBf16Step) * kBf16Step; }
inline int64_t padded_begin(int64_t k, int chunks, int chunk) {
  int64_t begin = 0;
  for (int c = 0; c < chunk; ++c) begin += padded_depth(chunk_begin(k, chunks, c + 1) - chunk_begin(k, chunks, c));
  return begin;
}

}  // namespace collimate::tensor
