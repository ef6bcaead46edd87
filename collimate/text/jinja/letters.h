#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// These functions treat letters in UTF-8 as Python's texts do, for characters whose other case is one character, and
// for ß.
namespace collimate::text::jinja {

std::string lower(std::string_view text);
std::string upper(std::string_view text);
// These return str.capitalize(), str.title() and str.swapcase().
std::string capitalized(std::string_view text);
std::string titled(std::string_view text);
std::string swapped(std::string_view text);

// The kinds of characters that str.isalpha() and its like ask for.
enum class Letters { kAlpha, kAlnum, kDecimal, kDigit, kNumeric };
bool is_all(std::string_view text, Letters kind);
// Returns whether there is a letter of that case and none of the other: str.islower() and str.isupper().
bool has_case(std::string_view text, bool large);
bool is_titled(std::string_view text);
// Returns how many runs of letters, digits and underscores the text has.
int64_t words_in(std::string_view text);

}  // namespace collimate::text::jinja
