#pragma once

#include <cstdint>

#include "collimate/tensor/allocator.h"
#include "collimate/tensor/compute_type.h"
#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// LinearPanels are a weight W [n, k] packed for `linear` in the device's own layout, of which callers know only `n` and
// `k`. An output's bits depend only on its own row of W, not on n or on the row's place. `reduction_chunks` (1, 2, 4 or
// 8) cuts k into that many ranges [k*c/chunks, k*(c+1)/chunks); each is one ascending chain, and a balanced binary tree
// adds them.
struct LinearPanels {
  int64_t n = 0;
  int64_t k = 0;
  ComputeType type = ComputeType::kFloat32;
  int reduction_chunks = 1;
  uint64_t version = 0;     // version of the weights that were packed; set by the owner
  void* data = nullptr;     // 64-byte aligned, packed_bytes() long; points into `owned` or at the caller's memory
  float* scales = nullptr;  // int8 only: one per output; set by prepare_panels()
  Buffer owned;

  // Sets the shape and takes memory of the device (what it owns is kept when large enough) or, with `memory`, uses the
  // caller's packed_bytes() bytes. Contents are undefined until every row is packed. Throws InputError for
  // reduction_chunks other than 1, 2, 4 and 8, and for more of them than k.
  void reset(const Exec& exec, int64_t rows_n, int64_t depth_k, ComputeType panel_type, int chunks,
             void* memory = nullptr);
};

// Returns the bytes that a packed weight takes on the exec's device.
int64_t packed_bytes(const Exec& exec, int64_t n, int64_t k, ComputeType type, int reduction_chunks);
// Prepares the memory of panels for their rows; reset() calls it.
void prepare_panels(const Exec& exec, LinearPanels& panels);
// Packs w [n, k], row-major. bf16 is rounded to nearest even. int8 is q = w / scale, rounded the same way, with scale =
// max |w| / 127 over the row; the scale is NaN where a weight of the row is not finite.
void pack_linear(const Exec& exec, const float* w, int64_t n, int64_t k, ComputeType type, int reduction_chunks,
                 LinearPanels& panels);
// Packs rows [first, first + rows) of panels that reset() has prepared, so that several matrices, as q, k and v, can
// lie side by side.
void pack_linear_rows(const Exec& exec, const float* w, int64_t first, int64_t rows, LinearPanels& panels);

// int8_error() returns how far int8 moves w [n, k], which lies in the host's memory: error = Σ (w - scale q)², total
// = Σ w².
struct RoundingError {
  double error = 0, total = 0;
};
RoundingError int8_error(const Exec& exec, const float* w, int64_t n, int64_t k);

// Returns outputs [first, first + n) as panels of their own in the same memory; first is a multiple of 32. Only for the
// CPU's panels, which hold 32 outputs each, ordered by k within a panel.
LinearPanels panel_range(const LinearPanels& panels, int64_t first, int64_t n);

struct LinearOptions {
  const float* bias = nullptr;  // [n]
  bool accumulate = false;      // y += x W^T + bias instead of y = ...
};

// Computes y [rows, n] = x [rows, k] W^T + bias; strides are floats between rows. A row's bits depend on that row
// alone, whatever the number of rows, its place, the number of threads and the instruction set. Each output and chunk
// is, for fp32, one FMA chain over ascending k. For bf16, x is rounded to bf16, denormals are flushed, and then
// - amx: in each 32-deep step one FMA chain over even k and one over odd k, both from 0, t = e + o, C = C + t;
// - dot: one FMA chain over pairs of k, in each pair the odd k first.
// For int8, it is fp32's chain over x and q, and the sum of the chunks is multiplied by the output's scale. y may not
// overlap x.
void linear(const Exec& exec, const float* x, int64_t x_stride, int64_t rows, const LinearPanels& panels, float* y,
            int64_t y_stride, const LinearOptions& options = {});

// Returns the most bytes that the right operands of the two functions below take in the calling thread's working
// memory, which is kept between calls.
int64_t linear_backward_scratch_bytes(int64_t rows, int64_t n, int64_t k);

// Computes dx [rows, k] (+)= dy [rows, n] W, where W is row-major fp32 [n, k]; type may be float32 or bf16. fp32: one
// chain over ascending n per element. bf16: dy and W are rounded to bf16 and added in the order of `type` over n.
void linear_grad_input(const Exec& exec, ComputeType type, const float* dy, int64_t dy_stride, int64_t rows,
                       const float* w, int64_t n, int64_t k, float* dx, int64_t dx_stride, bool accumulate = false);

// Computes dw [n, k] += dy^T x, and db [n] += the column sums of dy where db is not null; type may be float32 or bf16.
// Each element is one chain over ascending rows that begins with the old value; bf16 as above. Bits depend neither on
// threads nor on the number of columns.
void linear_grad_weight(const Exec& exec, ComputeType type, const float* dy, int64_t dy_stride, const float* x,
                        int64_t x_stride, int64_t rows, int64_t n, int64_t k, float* dw, float* db = nullptr);

}  // namespace collimate::tensor
