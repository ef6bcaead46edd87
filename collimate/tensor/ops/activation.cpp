#include "collimate/tensor/ops/activation.h"

#include "collimate/base/fault.h"
#include "collimate/tensor/kernels/grain.h"
#include "collimate/tensor/kernels/pointwise.h"
#include "collimate/tensor/operations.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kGrain = 16384;

void elementwise(const Exec& exec, void (*kernel)(const float*, int64_t, float*), const float* x, int64_t count,
                 float* y) {
  exec.parallel_for(count, kGrain, [&](int64_t begin, int64_t end) { kernel(x + begin, end - begin, y + begin); });
}

void elementwise_backward(const Exec& exec, void (*kernel)(const float*, const float*, int64_t, float*),
                          const float* dy, const float* x, int64_t count, float* dx) {
  exec.parallel_for(count, kGrain,
                    [&](int64_t begin, int64_t end) { kernel(dy + begin, x + begin, end - begin, dx + begin); });
}

// A gated backward reads and writes twice as much as its forward.
void gated(const Exec& exec, void (*kernel)(const Gated&, int64_t, int64_t), const Gated& s, int64_t rows) {
  exec.parallel_for(rows, row_grain((s.dy == nullptr ? 2 : 4) * s.width),
                    [&](int64_t begin, int64_t end) { kernel(s, begin, end); });
}

}  // namespace

// Defines a gated activation, forward and backward: the CPU's functions, which call the kernels of that name, and the
// public functions, which call the device's entry.
#define COLLIMATE_GATED(name)                                                                                          \
  void cpu::name(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width, \
                 float* y, int64_t y_stride) {                                                                         \
    gated(exec, pointwise_kernels().name, {gate, up, in_stride, width, y, nullptr, y_stride, nullptr, nullptr}, rows); \
    base::fault_rows(#name, y, rows, width, y_stride);                                                                 \
  }                                                                                                                    \
  void cpu::name##_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate, const float* up,  \
                            int64_t in_stride, int64_t rows, int64_t width, float* dgate, float* dup) {                \
    const Gated all{gate, up, in_stride, width, nullptr, dy, dy_stride, dgate, dup};                                   \
    gated(exec, pointwise_kernels().name##_backward, all, rows);                                                       \
  }                                                                                                                    \
  void name(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,      \
            float* y, int64_t y_stride) {                                                                              \
    exec.operations().name(exec, gate, up, in_stride, rows, width, y, y_stride);                                       \
  }                                                                                                                    \
  void name##_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate, const float* up,       \
                       int64_t in_stride, int64_t rows, int64_t width, float* dgate, float* dup) {                     \
    exec.operations().name##_backward(exec, dy, dy_stride, gate, up, in_stride, rows, width, dgate, dup);              \
  }
COLLIMATE_GATED(silu_mul)
COLLIMATE_GATED(gelu_tanh_mul)
#undef COLLIMATE_GATED

void cpu::bounded_swish_mul(const Exec& exec, const SwishBounds& how, const float* gate, const float* up,
                            int64_t in_stride, int64_t rows, int64_t width, float* y, int64_t y_stride) {
  const Gated all{gate, up, in_stride, width, y, nullptr, y_stride, nullptr, nullptr, how.slope, how.bound};
  gated(exec, pointwise_kernels().bounded_swish_mul, all, rows);
  base::fault_rows("bounded_swish_mul", y, rows, width, y_stride);
}

void cpu::bounded_swish_mul_backward(const Exec& exec, const SwishBounds& how, const float* dy, int64_t dy_stride,
                                     const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
                                     float* dgate, float* dup) {
  const Gated all{gate, up, in_stride, width, nullptr, dy, dy_stride, dgate, dup, how.slope, how.bound};
  gated(exec, pointwise_kernels().bounded_swish_mul_backward, all, rows);
}

void bounded_swish_mul(const Exec& exec, const SwishBounds& how, const float* gate, const float* up, int64_t in_stride,
                       int64_t rows, int64_t width, float* y, int64_t y_stride) {
  exec.operations().bounded_swish_mul(exec, how, gate, up, in_stride, rows, width, y, y_stride);
}

void bounded_swish_mul_backward(const Exec& exec, const SwishBounds& how, const float* dy, int64_t dy_stride,
                                const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
                                float* dgate, float* dup) {
  exec.operations().bounded_swish_mul_backward(exec, how, dy, dy_stride, gate, up, in_stride, rows, width, dgate, dup);
}

// Does the same for an activation of one input.
#define COLLIMATE_ACTIVATION(name)                                                                                    \
  void cpu::name(const Exec& exec, const float* x, int64_t count, float* y) {                                         \
    elementwise(exec, pointwise_kernels().name, x, count, y);                                                         \
    base::fault_rows(#name, y, count, 1, 1);                                                                          \
  }                                                                                                                   \
  void cpu::name##_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx) {            \
    elementwise_backward(exec, pointwise_kernels().name##_backward, dy, x, count, dx);                                \
  }                                                                                                                   \
  void name(const Exec& exec, const float* x, int64_t count, float* y) { exec.operations().name(exec, x, count, y); } \
  void name##_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx) {                 \
    exec.operations().name##_backward(exec, dy, x, count, dx);                                                        \
  }
COLLIMATE_ACTIVATION(gelu_tanh)
COLLIMATE_ACTIVATION(gelu)
COLLIMATE_ACTIVATION(relu)
COLLIMATE_ACTIVATION(relu_squared)
COLLIMATE_ACTIVATION(sigmoid)
#undef COLLIMATE_ACTIVATION

void cpu::add(const Exec& exec, const float* x, int64_t count, float* y) {
  elementwise(exec, pointwise_kernels().add, x, count, y);
}

void cpu::add_bias(const Exec& exec, const float* bias, int64_t rows, int64_t width, float* y, int64_t y_stride) {
  exec.parallel_for(rows, row_grain(width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) pointwise_kernels().add(bias, width, y + r * y_stride);
  });
}

void add(const Exec& exec, const float* x, int64_t count, float* y) { exec.operations().add(exec, x, count, y); }

void add_bias(const Exec& exec, const float* bias, int64_t rows, int64_t width, float* y, int64_t y_stride) {
  exec.operations().add_bias(exec, bias, rows, width, y, y_stride);
}

}  // namespace collimate::tensor
