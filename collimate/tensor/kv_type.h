#pragma once

#include <cstdint>

namespace collimate::tensor {

// How a cache keeps keys and values: as they are; rounded to bf16; to int8 beside one fp32 scale of a token and kv
// head, its largest value / 127; or to fp8 with four bits of exponent and three of mantissa (E4M3 of Micikevicius et
// al. 2022, largest value 448, at which greater ones stay). No standard library: kernels include it.
enum class KvType : uint8_t { kFloat32, kBFloat16, kInt8, kFp8 };

// So many values lie in the place of a float.
constexpr int64_t values_per_float(KvType type) {
  switch (type) {
    case KvType::kFloat32:
      return 1;
    case KvType::kBFloat16:
      return 2;
    case KvType::kInt8:
    case KvType::kFp8:
      return 4;
  }
  return 0;
}

}  // namespace collimate::tensor
