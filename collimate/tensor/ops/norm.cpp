#include "collimate/tensor/ops/norm.h"

#include <algorithm>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/norm.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

void backward(const Exec& exec, const NormBackward& b) {
  const NormKernels& k = norm_kernels();
  // Parameters come first, because dx may lie over dy.
  if (b.dweight != nullptr || b.dbias != nullptr) {
    const int64_t strips = (b.width + kNormStrip - 1) / kNormStrip;
    exec.parallel_for(strips, row_grain(b.rows * kNormStrip), [&](int64_t begin, int64_t end) {
      for (int64_t strip = begin; strip < end; ++strip) {
        k.parameter_gradients(b, strip * kNormStrip, std::min(b.width, (strip + 1) * kNormStrip));
      }
    });
  }
  const auto rows = b.mean == nullptr ? k.rms_backward : k.layer_backward;
  exec.parallel_for(b.rows, row_grain(b.width), [&](int64_t begin, int64_t end) { rows(b, begin, end); });
}

// HeadsOfWeight is a range of heads that share one weight.
struct HeadsOfWeight {
  int64_t first = 0;
  int64_t heads = 0;
};
std::vector<HeadsOfWeight> parts_of(const HeadRows& shape) {
  if (!shape.own_weights) return {{0, shape.heads}};
  std::vector<HeadsOfWeight> parts;
  for (int64_t h = 0; h < shape.heads; ++h) parts.push_back({h, 1});
  return parts;
}

}  // namespace

void cpu::rms_norm(const Exec& exec, const float* x, int64_t rows, int64_t width, const float* weight, float eps,
                   float* y, float* inv_rms, float offset) {
  const NormForward f{x, width, weight, nullptr, eps, y, nullptr, inv_rms, offset};
  exec.parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) { norm_kernels().rms(f, begin, end); });
  base::fault_rows("rms_norm", y, rows, width, width);
}

void cpu::rms_norm_backward(const Exec& exec, const float* dy, const float* x, const float* inv_rms, int64_t rows,
                            int64_t width, const float* weight, float* dx, bool accumulate, float* dweight,
                            float offset) {
  COLLIMATE_CHECK(rows == 0 || !accumulate || dx != dy);
  backward(exec, {dy, x, nullptr, inv_rms, rows, width, weight, dx, accumulate, dweight, nullptr, offset});
}

void cpu::head_norm(const Exec& exec, const float* x, const HeadRows& shape, const float* weight, float eps, float* y,
                    float* inv_rms, float offset) {
  const auto kernel = shape.centred ? norm_kernels().layer : norm_kernels().rms;
  for (const HeadsOfWeight& part : parts_of(shape)) {
    const int64_t at = part.first * shape.head_dim, row = part.first * shape.rows;
    NormForward f{x + at, shape.head_dim, weight + at, nullptr, eps, y + at, nullptr, nullptr, offset};
    if (inv_rms != nullptr) f.inv = inv_rms + row;
    if (inv_rms != nullptr && shape.centred) f.mean = f.inv + shape.rows * shape.heads;
    f.place = {shape.head_dim, part.heads, shape.stride};
    exec.parallel_for(shape.rows * part.heads, row_grain(shape.head_dim),
                      [&](int64_t begin, int64_t end) { kernel(f, begin, end); });
  }
  base::fault_rows("head_norm", y, shape.rows, int64_t{shape.heads} * shape.head_dim, shape.stride);
}

void cpu::head_norm_backward(const Exec& exec, const float* dy, const float* x, const float* inv_rms,
                             const HeadRows& shape, const float* weight, float* dx, float* dweight, float offset) {
  for (const HeadsOfWeight& part : parts_of(shape)) {
    const int64_t at = part.first * shape.head_dim;
    const float* inverse = inv_rms + part.first * shape.rows;
    NormBackward b{dy + at, x + at, nullptr, inverse, shape.rows * part.heads, shape.head_dim, weight + at, dx + at};
    if (shape.centred) b.mean = inverse + shape.rows * shape.heads;
    if (dweight != nullptr) b.dweight = dweight + at;
    b.offset = offset;
    b.place = {shape.head_dim, part.heads, shape.stride};
    backward(exec, b);
  }
}

void cpu::layer_norm(const Exec& exec, const float* x, int64_t rows, int64_t width, const float* weight,
                     const float* bias, float eps, float* y, float* mean, float* inv_std, float offset) {
  const NormForward f{x, width, weight, bias, eps, y, mean, inv_std, offset};
  exec.parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) { norm_kernels().layer(f, begin, end); });
  base::fault_rows("layer_norm", y, rows, width, width);
}

void cpu::layer_norm_backward(const Exec& exec, const float* dy, const float* x, const float* mean,
                              const float* inv_std, int64_t rows, int64_t width, const float* weight, float* dx,
                              bool accumulate, float* dweight, float* dbias, float offset) {
  COLLIMATE_CHECK(mean != nullptr && (rows == 0 || !accumulate || dx != dy));
  backward(exec, {dy, x, mean, inv_std, rows, width, weight, dx, accumulate, dweight, dbias, offset});
}

void rms_norm(const Exec& exec, const float* x, int64_t rows, int64_t width, const float* weight, float eps, float* y,
              float* inv_rms, float offset) {
  exec.operations().rms_norm(exec, x, rows, width, weight, eps, y, inv_rms, offset);
}

void rms_norm_backward(const Exec& exec, const float* dy, const float* x, const float* inv_rms, int64_t rows,
                       int64_t width, const float* weight, float* dx, bool accumulate, float* dweight, float offset) {
  exec.operations().rms_norm_backward(exec, dy, x, inv_rms, rows, width, weight, dx, accumulate, dweight, offset);
}

void head_norm(const Exec& exec, const float* x, const HeadRows& shape, const float* weight, float eps, float* y,
               float* inv_rms, float offset) {
  exec.operations().head_norm(exec, x, shape, weight, eps, y, inv_rms, offset);
}

void head_norm_backward(const Exec& exec, const float* dy, const float* x, const float* inv_rms, const HeadRows& shape,
                        const float* weight, float* dx, float* dweight, float offset) {
  exec.operations().head_norm_backward(exec, dy, x, inv_rms, shape, weight, dx, dweight, offset);
}

void layer_norm(const Exec& exec, const float* x, int64_t rows, int64_t width, const float* weight, const float* bias,
                float eps, float* y, float* mean, float* inv_std, float offset) {
  exec.operations().layer_norm(exec, x, rows, width, weight, bias, eps, y, mean, inv_std, offset);
}

void layer_norm_backward(const Exec& exec, const float* dy, const float* x, const float* mean, const float* inv_std,
                         int64_t rows, int64_t width, const float* weight, float* dx, bool accumulate, float* dweight,
                         float* dbias, float offset) {
  exec.operations().layer_norm_backward(exec, dy, x, mean, inv_std, rows, width, weight, dx, accumulate, dweight, dbias,
                                        offset);
}

}  // namespace collimate::tensor
