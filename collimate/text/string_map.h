#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace collimate::text {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// Maps texts to values; a look-up by a view copies nothing.
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

}  // namespace collimate::text
