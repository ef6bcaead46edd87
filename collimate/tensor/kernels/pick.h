#pragma once

#include <cstdint>

#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {

// The table of the instruction set in use; AMX machines run the AVX-512 one except in linear layers.
template <typename Table>
const Table& pick(const Table& avx2, const Table& avx512) {
  return instruction_set() == InstructionSet::kAvx2 ? avx2 : avx512;
}

// Rows per task for an op that touches `width` floats a row: about 64 KiB, so that small calls stay on one thread.
inline int64_t row_grain(int64_t width) {
  constexpr int64_t kFloats = 16384;
  return width >= kFloats ? 1 : kFloats / (width > 0 ? width : 1);
}

}  // namespace collimate::tensor
