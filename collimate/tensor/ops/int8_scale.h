#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace collimate::tensor {

// Returns the scale with which these values become int8, their largest absolute value / 127: 0 where all are 0 or
// this is below the least normal number, whose inverse is finite; NaN where one is not finite.
inline float int8_scale(const float* values, int64_t count) {
  float largest = 0, sum = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(values[i])), sum += values[i] * 0.0F;
  const float scale = largest / 127.0F;
  return (scale < std::numeric_limits<float>::min() ? 0.0F : scale) +
         sum;  // sum is 0, or NaN where a value is infinite or NaN
}

}  // namespace collimate::tensor
