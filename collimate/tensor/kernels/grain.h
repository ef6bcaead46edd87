#pragma once

#include <cstdint>

namespace collimate::tensor {

// Returns the rows per task of an operation that touches `width` floats a row: about 64 KiB, so that small calls stay
// on one thread.
inline int64_t row_grain(int64_t width) {
  constexpr int64_t kFloats = 16384;
  return width >= kFloats ? 1 : kFloats / (width > 0 ? width : 1);
}

}  // namespace collimate::tensor
