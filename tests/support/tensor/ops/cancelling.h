#pragma once

#include <cmath>
#include <cstdint>

namespace collimate::tensor {

// These test bits. In exact arithmetic the product of a row whose second half repeats the first with one whose second
// half negates it is 0; in floats it is the residue of rounding, and nothing but the order of additions decides that.
// Plain random numbers hide the order: sums rounded to bf16, or read through large ones, come out the same.

// The second half of row [k] becomes `sign` times the first, with an odd k its last number 0.
inline void mirror(float* row, int64_t k, float sign) {
  for (int64_t i = 0; i < k / 2; ++i) row[k / 2 + i] = sign * row[i];
  if (k % 2 == 1) row[k - 1] = 0;
}

// x [rows, k] and w [rows, k] become such that all products x w^T cancel. The numbers of w are multiplied with 2^-6 to
// 2^6, so that sums lose bits: those of few bf16 products of one magnitude fit into 24 of them.
inline void make_repeating(float* x, int64_t rows, int64_t k) {
  for (int64_t r = 0; r < rows; ++r) mirror(x + r * k, k, 1);
}
inline void make_cancelling(float* w, int64_t rows, int64_t k) {
  for (int64_t r = 0; r < rows; ++r) {
    float* row = w + r * k;
    for (int64_t i = 0; i < k; ++i) row[i] = std::ldexp(row[i], static_cast<int>(i * 5 % 13) - 6);
    mirror(row, k, -1);
  }
}

}  // namespace collimate::tensor
