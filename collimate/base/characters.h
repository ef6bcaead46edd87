#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace collimate::base {

// Whether a byte of UTF-8 begins a character (code point), and does not go on with one.
constexpr bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

// Characters of a text in UTF-8.
inline int64_t characters_in(std::string_view text) { return std::ranges::count_if(text, begins_character); }

}  // namespace collimate::base
