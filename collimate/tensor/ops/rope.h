#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// cos and sin of each (position, pair): [positions, rotary_dim / 2], made by the model (RoPE variants differ there).
struct RopeTable {
  const float* cos = nullptr;
  const float* sin = nullptr;
  int64_t positions = 0;
  int rotary_dim = 0;  // leading channels of a head that turn; even, at most head_dim
};

// Works in place on x [rows, heads * head_dim] (stride in floats): with half = rotary_dim / 2, x[i], x[i + half] become
// x[i] c - x[i + half] s, x[i + half] c + x[i] s. positions [rows]. InputError for a position outside the table.
void rope(const Exec& exec, float* x, int64_t x_stride, int64_t rows, int heads, int head_dim, const int32_t* positions,
          const RopeTable& table);
// The gradient: the same rotation by the negative angle, in place on dx.
void rope_backward(const Exec& exec, float* dx, int64_t dx_stride, int64_t rows, int heads, int head_dim,
                   const int32_t* positions, const RopeTable& table);

}  // namespace collimate::tensor
