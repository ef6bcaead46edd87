#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "collimate/base/words.h"

namespace collimate::batch {

enum class ElementType { kUInt8, kInt16, kInt32, kInt64, kFloat32, kBFloat16, kJson };
constexpr auto words_of(ElementType) {
  return base::Words<ElementType, 7>{"type", {"uint8", "int16", "int32", "int64", "float32", "bfloat16", "json"}};
}

template <class T>
constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, uint8_t>) return ElementType::kUInt8;
  if constexpr (std::is_same_v<T, int16_t>) return ElementType::kInt16;
  if constexpr (std::is_same_v<T, int32_t>) return ElementType::kInt32;
  if constexpr (std::is_same_v<T, int64_t>) return ElementType::kInt64;
  if constexpr (std::is_same_v<T, float>) return ElementType::kFloat32;
  if constexpr (std::is_same_v<T, nlohmann::json>) return ElementType::kJson;
}

// A key declares a column: its name, element type, inner shape, and whether each row has a length of its own (ragged).
template <class T>
struct Key {
  std::string name;
  std::vector<int64_t> inner = {};
  bool ragged = false;
  static constexpr ElementType type = element_type_of<T>();
};

}  // namespace collimate::batch
