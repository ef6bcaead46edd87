#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// A Dropout says which elements of rows are dropped: those whose draw, a Philox number made from the row's key, the
// layer and the column, is below `rate` (rate in [0, 1)). The others are divided by 1 - rate.
struct Dropout {
  const int32_t* keys = nullptr;  // [2, rows] on the device: the lower and the upper halves of 64 bits for each row
  uint64_t layer = 0;
  float rate = 0;
  int64_t first_column = 0;  // the column of the whole layer that is column 0 here
};

// Writes to y [rows, width] the elements of x that stay, divided by 1 - rate, and 0 for the others; with `accumulate`
// adds them to y. y may be x.
void dropout(const Exec& exec, const Dropout& dropout, const float* x, int64_t rows, int64_t width, float* y,
             bool accumulate = false);

}  // namespace collimate::tensor
