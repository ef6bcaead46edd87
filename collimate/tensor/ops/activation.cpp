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

// Backward it reads and writes twice as much.
void gated(const Exec& exec, void (*kernel)(const Gated&, int64_t, int64_t), const Gated& s, int64_t rows) {
  exec.parallel_for(rows, row_grain((s.dy == nullptr ? 2 : 4) * s.width),
                    [&](int64_t begin, int64_t end) { kernel(s, begin, end); });
}

}  // namespace

void cpu::silu_mul(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
                   float* y, int64_t y_stride) {
  gated(exec, pointwise_kernels().silu_mul, {gate, up, in_stride, width, y, nullptr, y_stride, nullptr, nullptr}, rows);
  base::fault_rows("silu_mul", y, rows, width, y_stride);
}

void cpu::silu_mul_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate, const float* up,
                            int64_t in_stride, int64_t rows, int64_t width, float* dgate, float* dup) {
  gated(exec, pointwise_kernels().silu_mul_backward, {gate, up, in_stride, width, nullptr, dy, dy_stride, dgate, dup},
        rows);
}

void cpu::gelu_tanh_mul(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows,
                        int64_t width, float* y, int64_t y_stride) {
  gated(exec, pointwise_kernels().gelu_tanh_mul, {gate, up, in_stride, width, y, nullptr, y_stride, nullptr, nullptr},
        rows);
  base::fault_rows("gelu_tanh_mul", y, rows, width, y_stride);
}

void cpu::gelu_tanh_mul_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate,
                                 const float* up, int64_t in_stride, int64_t rows, int64_t width, float* dgate,
                                 float* dup) {
  gated(exec, pointwise_kernels().gelu_tanh_mul_backward,
        {gate, up, in_stride, width, nullptr, dy, dy_stride, dgate, dup}, rows);
}

// An activation of one input, forward and backward, by the kernels of its name.
#define COLLIMATE_ACTIVATION(name)                                                                         \
  void cpu::name(const Exec& exec, const float* x, int64_t count, float* y) {                              \
    elementwise(exec, pointwise_kernels().name, x, count, y);                                              \
    base::fault_rows(#name, y, count, 1, 1);                                                               \
  }                                                                                                        \
  void cpu::name##_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx) { \
    elementwise_backward(exec, pointwise_kernels().name##_backward, dy, x, count, dx);                     \
  }
COLLIMATE_ACTIVATION(gelu_tanh)
COLLIMATE_ACTIVATION(gelu)
COLLIMATE_ACTIVATION(relu)
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

void silu_mul(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
              float* y, int64_t y_stride) {
  exec.operations().silu_mul(exec, gate, up, in_stride, rows, width, y, y_stride);
}

void silu_mul_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate, const float* up,
                       int64_t in_stride, int64_t rows, int64_t width, float* dgate, float* dup) {
  exec.operations().silu_mul_backward(exec, dy, dy_stride, gate, up, in_stride, rows, width, dgate, dup);
}

void gelu_tanh_mul(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
                   float* y, int64_t y_stride) {
  exec.operations().gelu_tanh_mul(exec, gate, up, in_stride, rows, width, y, y_stride);
}

void gelu_tanh_mul_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate, const float* up,
                            int64_t in_stride, int64_t rows, int64_t width, float* dgate, float* dup) {
  exec.operations().gelu_tanh_mul_backward(exec, dy, dy_stride, gate, up, in_stride, rows, width, dgate, dup);
}

void gelu_tanh(const Exec& exec, const float* x, int64_t count, float* y) {
  exec.operations().gelu_tanh(exec, x, count, y);
}

void gelu_tanh_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx) {
  exec.operations().gelu_tanh_backward(exec, dy, x, count, dx);
}

void gelu(const Exec& exec, const float* x, int64_t count, float* y) { exec.operations().gelu(exec, x, count, y); }

void gelu_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx) {
  exec.operations().gelu_backward(exec, dy, x, count, dx);
}

void relu(const Exec& exec, const float* x, int64_t count, float* y) { exec.operations().relu(exec, x, count, y); }

void relu_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx) {
  exec.operations().relu_backward(exec, dy, x, count, dx);
}

void sigmoid(const Exec& exec, const float* x, int64_t count, float* y) {
  exec.operations().sigmoid(exec, x, count, y);
}

void sigmoid_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx) {
  exec.operations().sigmoid_backward(exec, dy, x, count, dx);
}

void add(const Exec& exec, const float* x, int64_t count, float* y) { exec.operations().add(exec, x, count, y); }

void add_bias(const Exec& exec, const float* bias, int64_t rows, int64_t width, float* y, int64_t y_stride) {
  exec.operations().add_bias(exec, bias, rows, width, y, y_stride);
}

}  // namespace collimate::tensor
