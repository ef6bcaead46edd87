#pragma once

#include <string_view>

namespace collimate::base {

inline constexpr std::string_view kBlanks = " \t\r\n";

// Returns the text without blanks at both ends.
inline std::string_view stripped(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace collimate::base
