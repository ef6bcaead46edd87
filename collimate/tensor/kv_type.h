#pragma once

#include <cstdint>

namespace collimate::tensor {

// KvType says how a cache keeps keys and values: as they are; rounded to bf16; as int8, with one fp32 scale for each
// token and kv head, which is the largest absolute value / 127; or as fp8 with four bits of exponent and three of
// mantissa (E4M3 of Micikevicius et al. 2022), where values beyond 448, the largest, become 448. This header includes
// nothing of the standard library but <cstdint>, because kernels include it.
enum class KvType : uint8_t { kFloat32, kBFloat16, kInt8, kFp8 };

// Returns how many values take the space of one float.
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
