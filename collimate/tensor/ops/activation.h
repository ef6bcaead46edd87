#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// These operations are elementwise. Their exp and tanh are our own polynomials, so that every instruction set gives the
// same bits.

// Computes the product of a gated MLP: y[r, i] = silu(gate[r, i]) * up[r, i] for i < width. gate and up have row stride
// `in_stride` (2 * width when one linear makes both: gate first, up = gate + width); y has row stride `y_stride`.
void silu_mul(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
              float* y, int64_t y_stride);
// Writes dgate and dup with row stride `in_stride`; they may be gate and up themselves.
void silu_mul_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate, const float* up,
                       int64_t in_stride, int64_t rows, int64_t width, float* dgate, float* dup);

// Does what silu_mul does, with gelu_tanh (below) in place of silu.
void gelu_tanh_mul(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
                   float* y, int64_t y_stride);
void gelu_tanh_mul_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate, const float* up,
                            int64_t in_stride, int64_t rows, int64_t width, float* dgate, float* dup);

// Computes the product of gpt-oss's gated MLP (OpenAI 2025): y = (1 + u) g sigmoid(slope g), where g = min(gate, bound)
// and u is up clamped to [-bound, bound]. The gradient is 0 where a bound cuts a value off.
struct SwishBounds {
  float slope = 1, bound = 0;
};
void bounded_swish_mul(const Exec& exec, const SwishBounds& how, const float* gate, const float* up, int64_t in_stride,
                       int64_t rows, int64_t width, float* y, int64_t y_stride);
void bounded_swish_mul_backward(const Exec& exec, const SwishBounds& how, const float* dy, int64_t dy_stride,
                                const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
                                float* dgate, float* dup);

// Computes GPT-2's "gelu_new": y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))). y may be x.
void gelu_tanh(const Exec& exec, const float* x, int64_t count, float* y);
// Computes dx = dy * gelu'(x). dx may be dy.
void gelu_tanh_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// Computes y = x Φ(x), where Φ is the normal distribution, with erf to 1.5e-7 (Abramowitz and Stegun, 7.1.26). y may
// be x.
void gelu(const Exec& exec, const float* x, int64_t count, float* y);
// Computes dx = dy (Φ(x) + x φ(x)). dx may be dy.
void gelu_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// Computes y = max(x, 0); NaN stays NaN. y may be x.
void relu(const Exec& exec, const float* x, int64_t count, float* y);
// Computes dx = dy where x > 0, else 0. dx may be dy.
void relu_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// Computes y = max(x, 0)² (So et al. 2021, arXiv 2109.08668); NaN stays NaN. y may be x.
void relu_squared(const Exec& exec, const float* x, int64_t count, float* y);
// Computes dx = dy 2 max(x, 0). dx may be dy.
void relu_squared_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// Computes y = 1 / (1 + exp(-x)). y may be x.
void sigmoid(const Exec& exec, const float* x, int64_t count, float* y);
// Computes dx = dy s (1 - s), where s is the sigmoid of x. dx may be dy.
void sigmoid_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// Computes y[i] += x[i].
void add(const Exec& exec, const float* x, int64_t count, float* y);
// Computes y[r, i] += bias[i].
void add_bias(const Exec& exec, const float* bias, int64_t rows, int64_t width, float* y, int64_t y_stride);

}  // namespace collimate::tensor
