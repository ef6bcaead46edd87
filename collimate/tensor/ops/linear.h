#pragma once

#include <cstdint>

#include "collimate/tensor/allocator.h"
#include "collimate/tensor/compute_type.h"
#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// A weight W [n, k] packed for `linear`, as the device likes it: opaque but for `n` and `k`. Bits of an output depend
// on its own row of W only, not on n or on its place. `reduction_chunks` (1, 2, 4 or 8) cuts k into that many ranges
// [k*c/chunks, k*(c+1)/chunks), each one ascending chain, combined by a balanced binary tree.
struct LinearPanels {
  int64_t n = 0;
  int64_t k = 0;
  ComputeType type = ComputeType::kFloat32;
  int reduction_chunks = 1;
  uint64_t version = 0;     // the weights' version these were packed from; set by the owner
  void* data = nullptr;     // 64-byte aligned, packed_bytes() long; points into `owned` or at the caller's memory
  float* scales = nullptr;  // of int8: one per output; set by prepare_panels()
  Buffer owned;

  // Sets the shape and takes own memory of the device (kept when large enough) or, with `memory`, the caller's
  // packed_bytes() bytes. Contents are undefined until every row is packed. InputError for reduction_chunks other than
  // 1, 2, 4, 8, or more than k.
  void reset(const Exec& exec, int64_t rows_n, int64_t depth_k, ComputeType panel_type, int chunks,
             void* memory = nullptr);
};

// Such a weight takes so many bytes on the exec's device.
int64_t packed_bytes(const Exec& exec, int64_t n, int64_t k, ComputeType type, int reduction_chunks);
// Makes the memory of panels ready for their rows; called by reset().
void prepare_panels(const Exec& exec, LinearPanels& panels);
// Packs w [n, k] row-major. bf16 rounds to nearest even. int8: q = w / scale rounded so, scale = max |w| / 127 of the
// row; NaN where a weight of it is not finite.
void pack_linear(const Exec& exec, const float* w, int64_t n, int64_t k, ComputeType type, int reduction_chunks,
                 LinearPanels& panels);
// Packs rows [first, first + rows) of panels that were reset before: several matrices side by side, as q, k and v.
void pack_linear_rows(const Exec& exec, const float* w, int64_t first, int64_t rows, LinearPanels& panels);

// Int8 makes this of w [n, k], in the host's memory: Σ (w - scale q)² and Σ w².
struct RoundingError {
  double error = 0, total = 0;
};
RoundingError int8_error(const Exec& exec, const float* w, int64_t n, int64_t k);

// Returns, for the CPU's operations, outputs [first, first + n) of its panels of 32 outputs, inside a panel k by k, as
// panels of their own in the same memory; first is a multiple of 32.
LinearPanels panel_range(const LinearPanels& panels, int64_t first, int64_t n);

struct LinearOptions {
  const float* bias = nullptr;  // [n]
  bool accumulate = false;      // y += x W^T + bias instead of y = ...
};

// y [rows, n] = x [rows, k] W^T + bias; strides are floats between rows. A row's bits depend on that row alone: any
// number of rows, any place, any thread count, any instruction set. Per output and chunk, fp32: one ascending-k FMA
// chain. bf16: x rounded to bf16, denormals flushed, and then
// - amx: per 32-deep step an FMA chain over even k and one over odd k, both from 0, t = e + o, C = C + t;
// - dot: one FMA chain over pairs of k, of each pair the odd k first.
// int8: fp32's chain over x and q, the combined chunks times the output's scale.
// y may not overlap x.
void linear(const Exec& exec, const float* x, int64_t x_stride, int64_t rows, const LinearPanels& panels, float* y,
            int64_t y_stride, const LinearOptions& options = {});

// Working memory of the calling thread in the two functions below at most, kept between calls.
int64_t linear_backward_scratch_bytes(int64_t rows, int64_t n, int64_t k);

// float32 and bf16 alone.
// dx [rows, k] (+)= dy [rows, n] W, W row-major fp32 [n, k]. fp32: one ascending-n chain per element. bf16: dy and W
// rounded to bf16, in the order of `type` over n.
void linear_grad_input(const Exec& exec, ComputeType type, const float* dy, int64_t dy_stride, int64_t rows,
                       const float* w, int64_t n, int64_t k, float* dx, int64_t dx_stride, bool accumulate = false);

// dw [n, k] += dy^T x; db [n] += column sums of dy when db is not null. One chain per element over ascending rows, from
// the old value on; bf16 as above. Bits do not depend on threads, nor on how many columns there are.
void linear_grad_weight(const Exec& exec, ComputeType type, const float* dy, int64_t dy_stride, const float* x,
                        int64_t x_stride, int64_t rows, int64_t n, int64_t k, float* dw, float* db = nullptr);

}  // namespace collimate::tensor
