#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace collimate::base {

// Says whether a byte of UTF-8 begins a character (code point); the other bytes continue one.
constexpr bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

// Returns the number of characters (code points) of a text in UTF-8.
inline int64_t characters_in(std::string_view text) { return std::ranges::count_if(text, begins_character); }

// Returns the beginning of a text, for an error: the whole text when it has at most `most` bytes, otherwise as many
// whole characters as fit into `most` bytes together with the "..." that follows them. The "..." is always there.
inline std::string beginning_of(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most < 3 ? 0 : most - 3;
  while (end > 0 && !begins_character(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace collimate::base
