#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>

namespace collimate::base {

// Returns the text with the letters of ASCII in lower case.
inline std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Returns the letters and digits of a name, and those of its characters that are in `also`, in lower case.
inline std::string plain_name(std::string_view name, std::string_view also = "") {
  std::string kept;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || also.find(c) != std::string_view::npos) kept += c;
  return lower_case(std::move(kept));
}

}  // namespace collimate::base
