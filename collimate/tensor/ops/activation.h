#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// Elementwise; exp and tanh are our own polynomials, so bits are the same on every instruction set.

// Gated MLP: y[r, i] = silu(gate[r, i]) * up[r, i], i < width. gate and up have row stride `in_stride` (2 * width when
// one linear makes both: gate first, up = gate + width); y has row stride `y_stride`.
void silu_mul(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
              float* y, int64_t y_stride);
// dgate and dup with row stride `in_stride`; they may be gate and up themselves.
void silu_mul_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate, const float* up,
                       int64_t in_stride, int64_t rows, int64_t width, float* dgate, float* dup);

// This is silu_mul with gelu_tanh below in place of silu.
void gelu_tanh_mul(const Exec& exec, const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
                   float* y, int64_t y_stride);
void gelu_tanh_mul_backward(const Exec& exec, const float* dy, int64_t dy_stride, const float* gate, const float* up,
                            int64_t in_stride, int64_t rows, int64_t width, float* dgate, float* dup);

// The gated MLP of gpt-oss (OpenAI 2025): (1 + u) g sigmoid(slope g) of the gate g, at most `bound`, and u, which is up
// within it both ways. Where a bound holds there is no gradient.
struct SwishBounds {
  float slope = 1, bound = 0;
};
void bounded_swish_mul(const Exec& exec, const SwishBounds& how, const float* gate, const float* up, int64_t in_stride,
                       int64_t rows, int64_t width, float* y, int64_t y_stride);
void bounded_swish_mul_backward(const Exec& exec, const SwishBounds& how, const float* dy, int64_t dy_stride,
                                const float* gate, const float* up, int64_t in_stride, int64_t rows, int64_t width,
                                float* dgate, float* dup);

// GPT-2's "gelu_new": 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x³))). y may be x.
void gelu_tanh(const Exec& exec, const float* x, int64_t count, float* y);
// dx = dy * gelu'(x). dx may be dy.
void gelu_tanh_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// x Φ(x), Φ the normal distribution, with erf of error 1.5e-7 (Abramowitz and Stegun, 7.1.26). y may be x.
void gelu(const Exec& exec, const float* x, int64_t count, float* y);
// dx = dy (Φ(x) + x φ(x)). dx may be dy.
void gelu_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// y = max(x, 0); NaN stays NaN. y may be x.
void relu(const Exec& exec, const float* x, int64_t count, float* y);
// dx = dy where x > 0, else 0. dx may be dy.
void relu_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// y = max(x, 0)² (So et al. 2021, arXiv 2109.08668); NaN stays NaN. y may be x.
void relu_squared(const Exec& exec, const float* x, int64_t count, float* y);
// dx = dy 2 max(x, 0). dx may be dy.
void relu_squared_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// y = 1 / (1 + exp(-x)). y may be x.
void sigmoid(const Exec& exec, const float* x, int64_t count, float* y);
// dx = dy s (1 - s), s the sigmoid of x. dx may be dy.
void sigmoid_backward(const Exec& exec, const float* dy, const float* x, int64_t count, float* dx);

// y[i] += x[i].
void add(const Exec& exec, const float* x, int64_t count, float* y);
// y[r, i] += bias[i].
void add_bias(const Exec& exec, const float* bias, int64_t rows, int64_t width, float* y, int64_t y_stride);

}  // namespace collimate::tensor
