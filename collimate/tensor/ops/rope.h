#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// A RopeTable holds cos and sin of each (position, pair), [positions, rotary_dim / 2]. The model makes it, because
// there the variants of RoPE differ.
struct RopeTable {
  const float* cos = nullptr;
  const float* sin = nullptr;
  int64_t positions = 0;
  int rotary_dim = 0;  // leading channels of a head that are rotated; even, at most head_dim
};

// Rotates x [rows, heads * head_dim] (stride in floats) in place: with half = rotary_dim / 2, x[i] becomes x[i] c - x[i
// + half] s, and x[i + half] becomes x[i + half] c + x[i] s. positions [rows]. Throws InputError for a position outside
// the table.
void rope(const Exec& exec, float* x, int64_t x_stride, int64_t rows, int heads, int head_dim, const int32_t* positions,
          const RopeTable& table);
// Computes the gradient in place on dx: the rotation by the negative angle.
void rope_backward(const Exec& exec, float* dx, int64_t dx_stride, int64_t rows, int heads, int head_dim,
                   const int32_t* positions, const RopeTable& table);

}  // namespace collimate::tensor
