#pragma once

#include <cstdint>

namespace collimate::tensor {

// Names the arrays of a model that a residency move is about; combined with |.
enum ResidentPart : uint32_t {
  kResidentWeights = 1U << 0,  // master values and panels
  kResidentGradients = 1U << 1,
  kResidentOptimizer = 1U << 2,
  kResidentKvCache = 1U << 3,
};
using ResidentParts = uint32_t;

enum class Place : uint8_t { kDevice, kHost, kDisk, kNowhere };

}  // namespace collimate::tensor
