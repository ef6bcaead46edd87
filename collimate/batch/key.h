#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace collimate::batch {

enum class ElementType { kUInt8, kInt32, kInt64, kFloat32, kBFloat16, kJson };
enum class PadSide { kLeft, kRight };

template <class T>
constexpr ElementType kElementTypeOf;
template <>
inline constexpr ElementType kElementTypeOf<uint8_t> = ElementType::kUInt8;
template <>
inline constexpr ElementType kElementTypeOf<int32_t> = ElementType::kInt32;
template <>
inline constexpr ElementType kElementTypeOf<int64_t> = ElementType::kInt64;
template <>
inline constexpr ElementType kElementTypeOf<float> = ElementType::kFloat32;
template <>
inline constexpr ElementType kElementTypeOf<nlohmann::json> = ElementType::kJson;

// Declares a column: its name, element type, inner shape, whether each row has a length of its own, and how it is
// padded.
template <class T>
struct Key {
  std::string name;
  std::vector<int64_t> inner = {};
  bool ragged = false;
  double padding = 0.0;
  PadSide side = PadSide::kRight;
  static constexpr ElementType type = kElementTypeOf<T>;
};

}  // namespace collimate::batch
