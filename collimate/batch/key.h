#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace collimate::batch {

enum class ElementType { kUInt8, kInt32, kInt64, kFloat32, kBFloat16, kJson };
enum class PadSide { kLeft, kRight };

template <class T>
struct ElementTypeOf;
template <>
struct ElementTypeOf<uint8_t> {
  static constexpr ElementType value = ElementType::kUInt8;
};
template <>
struct ElementTypeOf<int32_t> {
  static constexpr ElementType value = ElementType::kInt32;
};
template <>
struct ElementTypeOf<int64_t> {
  static constexpr ElementType value = ElementType::kInt64;
};
template <>
struct ElementTypeOf<float> {
  static constexpr ElementType value = ElementType::kFloat32;
};
template <>
struct ElementTypeOf<nlohmann::json> {
  static constexpr ElementType value = ElementType::kJson;
};

// Declares a column: its name, element type, inner shape, whether each row has a length of its own, and how it is
// padded.
template <class T>
struct Key {
  std::string name;
  std::vector<int64_t> inner = {};
  bool ragged = false;
  double padding = 0.0;
  PadSide side = PadSide::kRight;
  static constexpr ElementType type = ElementTypeOf<T>::value;
};

}  // namespace collimate::batch
