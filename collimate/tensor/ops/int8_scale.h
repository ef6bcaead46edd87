#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace collimate::tensor {

// The scale with which these values become int8: 0 where all are 0, NaN where one is not finite.
inline float int8_scale(const float* values, int64_t count) {
  float largest = 0, sum = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(values[i])), sum += values[i] * 0.0F;
  return largest / 127.0F + sum;  // sum: NaN of infinities and NaN
}

}  // namespace collimate::tensor
