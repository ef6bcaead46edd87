#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/tensor/kernels/blocking.h"
#include "collimate/tensor/kernels/pack.h"
#include "collimate/tensor/operations.h"
#include "collimate/tensor/ops/int8_scale.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::tensor {
namespace {

int64_t panel_elements(int64_t k, ComputeType type, int chunks) {
  return (is_bf16(type) ? padded_begin(k, chunks, chunks) : k) * kPanel;
}

int64_t element_bytes(ComputeType type) {
  if (type == ComputeType::kInt8) return 1;
  return is_bf16(type) ? 2 : 4;
}

// Returns the bytes of the panels, without scales.
int64_t panel_bytes(int64_t n, int64_t k, ComputeType type, int chunks) {
  return ceil_div(n, kPanel) * panel_elements(k, type, chunks) * element_bytes(type);
}

// Rounds w / scale to the nearest whole number, ties to even, given that |w / scale| is at most 127; returns 0 where
// the scale is not above 0.
int8_t to_int8(float w, float scale) {
  constexpr float kWhole = 12582912.0F;  // 1.5 * 2^23: a sum with it is a whole number
  return scale > 0 ? static_cast<int8_t>((w / scale + kWhole) - kWhole) : int8_t{0};
}

// Packs `count` rows, at most 8, into neighbouring columns of a panel [k][32], and sets their scales.
void pack_int8(const LinearPanels& p, const float* w, int64_t row, int64_t count, int8_t* column) {
  constexpr int64_t kStep = 256;
  int8_t q[8][kStep];
  for (int64_t r = 0; r < count; ++r) p.scales[row + r] = int8_scale(w + r * p.k, p.k);
  for (int64_t first = 0; first < p.k; first += kStep) {
    const int64_t depth = std::min(kStep, p.k - first);
    for (int64_t r = 0; r < count; ++r)
      for (int64_t i = 0; i < depth; ++i) q[r][i] = to_int8(w[r * p.k + first + i], p.scales[row + r]);
    for (int64_t i = 0; i < depth; ++i)
      for (int64_t r = 0; r < count; ++r) column[(first + i) * kPanel + r] = q[r][i];
  }
}

// Rounds to the nearest bf16, ties to even; NaN stays NaN.
uint16_t to_bf16(float x) {
  uint32_t u = 0;
  std::memcpy(&u, &x, sizeof(u));
  if ((u & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((u | 0x00400000U) >> 16);
  return static_cast<uint16_t>((u + 0x7fffU + ((u >> 16) & 1U)) >> 16);
}

// Packs one output's weights into its column of a panel [k][32].
void pack_row_fp32(const float* w, int64_t k, float* column) {
  for (int64_t i = 0; i < k; ++i) column[i * kPanel] = w[i];
}

// Packs a row into a bf16 panel, which holds, for each chunk and 32-deep step, two tiles of [16 pairs][16 columns][2].
void pack_row_bf16(const float* w, const LinearPanels& p, int64_t column, uint16_t* panel) {
  uint16_t* at = panel + column / 16 * 512 + column % 16 * 2;
  for (int chunk = 0; chunk < p.reduction_chunks; ++chunk) {
    const int64_t begin = chunk_begin(p.k, p.reduction_chunks, chunk);
    const int64_t depth = chunk_begin(p.k, p.reduction_chunks, chunk + 1) - begin;
    const int64_t padded = padded_depth(depth);
    for (int64_t i = 0; i < padded; ++i) {
      at[i / 32 * 1024 + i % 32 / 2 * 32 + i % 2] = i < depth ? to_bf16(w[begin + i]) : uint16_t{0};
    }
    at += padded * kPanel;
  }
}

void clear_row(const LinearPanels& p, int64_t row) {
  const int64_t column = row % kPanel;
  const int64_t elements = panel_elements(p.k, p.type, p.reduction_chunks);
  if (p.type == ComputeType::kFloat32) {
    float* at = static_cast<float*>(p.data) + row / kPanel * elements + column;
    for (int64_t i = 0; i < p.k; ++i) at[i * kPanel] = 0.0F;
  } else if (p.type == ComputeType::kInt8) {
    int8_t* at = static_cast<int8_t*>(p.data) + row / kPanel * elements + column;
    for (int64_t i = 0; i < p.k; ++i) at[i * kPanel] = 0;
    p.scales[row] = 0;
  } else {
    uint16_t* at = static_cast<uint16_t*>(p.data) + row / kPanel * elements + column / 16 * 512 + column % 16 * 2;
    for (int64_t i = 0; i < elements / kPanel; ++i) at[i / 32 * 1024 + i % 32 / 2 * 32 + i % 2] = 0;
  }
}

void pack_row(const LinearPanels& p, const float* w, int64_t row) {
  const int64_t panel = row / kPanel * panel_elements(p.k, p.type, p.reduction_chunks);
  if (p.type == ComputeType::kFloat32) {
    pack_row_fp32(w, p.k, static_cast<float*>(p.data) + panel + row % kPanel);
  } else if (p.type == ComputeType::kInt8) {
    pack_int8(p, w, row, 1, static_cast<int8_t*>(p.data) + panel + row % kPanel);
  } else {
    pack_row_bf16(w, p, row % kPanel, static_cast<uint16_t*>(p.data) + panel);
  }
}

// Packs rows [row, row + 8), where row is a multiple of 8: they are eight columns of one panel and of one of its
// halves.
void pack_eight(const LinearPanels& p, const float* w, int64_t row) {
  const int64_t column = row % kPanel;
  const int64_t panel = row / kPanel * panel_elements(p.k, p.type, p.reduction_chunks);
  if (p.type == ComputeType::kFloat32) {
    avx2::pack_eight_fp32(w, p.k, p.k, static_cast<float*>(p.data) + panel + column);
    return;
  }
  if (p.type == ComputeType::kInt8) {
    pack_int8(p, w, row, 8, static_cast<int8_t*>(p.data) + panel + column);
    return;
  }
  uint16_t* at = static_cast<uint16_t*>(p.data) + panel + column / 16 * 512 + column % 16 * 2;
  for (int chunk = 0; chunk < p.reduction_chunks; ++chunk) {
    const int64_t begin = chunk_begin(p.k, p.reduction_chunks, chunk);
    const int64_t depth = chunk_begin(p.k, p.reduction_chunks, chunk + 1) - begin;
    avx2::pack_eight_bf16(w + begin, p.k, depth, at);
    at += padded_depth(depth) * kPanel;
  }
}

}  // namespace

int64_t cpu::packed_bytes(const Exec&, int64_t n, int64_t k, ComputeType type, int reduction_chunks) {
  const int64_t panels = panel_bytes(n, k, type, reduction_chunks);
  if (type != ComputeType::kInt8) return panels;
  return panels + ceil_div(n, kPanel) * kPanel * static_cast<int64_t>(sizeof(float));
}

LinearPanels panel_range(const LinearPanels& panels, int64_t first, int64_t n) {
  COLLIMATE_CHECK(first % kPanel == 0 && first + n <= panels.n, "{} and {} of {}", first, n, panels.n);
  LinearPanels part;
  part.n = n;
  part.k = panels.k;
  part.type = panels.type;
  part.reduction_chunks = panels.reduction_chunks;
  part.version = panels.version;
  part.data = static_cast<char*>(panels.data) + panel_bytes(first, panels.k, panels.type, panels.reduction_chunks);
  if (panels.scales != nullptr) part.scales = panels.scales + first;
  return part;
}

// The scales lie behind the panels. Outputs that fill up the last panel are zeros.
void cpu::prepare_panels(const Exec&, LinearPanels& panels) {
  panels.scales = nullptr;
  if (panels.type == ComputeType::kInt8)
    panels.scales = reinterpret_cast<float*>(static_cast<char*>(panels.data) +
                                             panel_bytes(panels.n, panels.k, panels.type, panels.reduction_chunks));
  for (int64_t row = panels.n; row % kPanel != 0; ++row) clear_row(panels, row);
}

void LinearPanels::reset(const Exec& exec, int64_t rows_n, int64_t depth_k, ComputeType panel_type, int chunks,
                         void* memory) {
  if (chunks != 1 && chunks != 2 && chunks != 4 && chunks != 8) {
    throw base::InputError(base::expectation("reduction_chunks", "1, 2, 4 or 8", std::to_string(chunks)));
  }
  COLLIMATE_CHECK(rows_n > 0 && depth_k > 0, "n {} k {}", rows_n, depth_k);
  if (depth_k < chunks) {  // a chunk without inputs has no sum
    throw base::InputError(base::expectation(
        "reduction_chunks", fmt::format("at most the {} inputs of the layer", depth_k), std::to_string(chunks)));
  }
  n = rows_n;
  k = depth_k;
  type = panel_type;
  reduction_chunks = chunks;
  const int64_t bytes = packed_bytes(exec, n, k, type, chunks);
  if (memory == nullptr && owned.bytes() < bytes) owned = Buffer(bytes, *exec.device);
  data = memory != nullptr ? memory : owned.data();
  prepare_panels(exec, *this);
}

void cpu::pack_linear_rows(const Exec& exec, const float* w, int64_t first, int64_t rows, LinearPanels& panels) {
  COLLIMATE_CHECK(panels.data != nullptr && first >= 0 && first + rows <= panels.n);
  const int64_t panel_begin = first / kPanel;
  const int64_t panel_end = ceil_div(first + rows, kPanel);
  exec.parallel_for(panel_end - panel_begin, 4, [&](int64_t begin, int64_t end) {
    const int64_t from = std::max(first, (panel_begin + begin) * kPanel);
    const int64_t to = std::min(first + rows, (panel_begin + end) * kPanel);
    for (int64_t row = from; row < to;) {
      const float* at = w + (row - first) * panels.k;
      if (row % 8 == 0 && row + 8 <= to) {
        pack_eight(panels, at, row);
        row += 8;
      } else {
        pack_row(panels, at, row++);
      }
    }
  });
}

RoundingError int8_error(const Exec& exec, const float* w, int64_t n, int64_t k) {
  std::vector<RoundingError> rows(static_cast<size_t>(n));
  exec.parallel_for(n, 16, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* row = w + r * k;
      const float scale = int8_scale(row, k);
      RoundingError sums;
      for (int64_t i = 0; i < k; ++i) {
        const double left = double{row[i]} - double{scale} * to_int8(row[i], scale);
        sums.error += left * left;
        sums.total += double{row[i]} * row[i];
      }
      base::at(rows, r) = sums;
    }
  });
  RoundingError all;
  for (const RoundingError& row : rows) all.error += row.error, all.total += row.total;
  return all;
}

void pack_linear(const Exec& exec, const float* w, int64_t n, int64_t k, ComputeType type, int reduction_chunks,
                 LinearPanels& panels) {
  panels.reset(exec, n, k, type, reduction_chunks);
  pack_linear_rows(exec, w, 0, n, panels);
}

void pack_linear_rows(const Exec& exec, const float* w, int64_t first, int64_t rows, LinearPanels& panels) {
  exec.operations().pack_linear_rows(exec, w, first, rows, panels);
}

int64_t packed_bytes(const Exec& exec, int64_t n, int64_t k, ComputeType type, int reduction_chunks) {
  return exec.operations().packed_bytes(exec, n, k, type, reduction_chunks);
}

void prepare_panels(const Exec& exec, LinearPanels& panels) { exec.operations().prepare_panels(exec, panels); }

}  // namespace collimate::tensor
