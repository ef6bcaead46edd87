#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Letters as Python's texts have them, in UTF-8, for characters whose other case is one character, and for ß.
namespace collimate::text::jinja {

std::string lower(std::string_view text);
std::string upper(std::string_view text);
// str.capitalize(), str.title() and str.swapcase().
std::string capitalized(std::string_view text);
std::string titled(std::string_view text);
std::string swapped(std::string_view text);

// Kinds of characters that str.isalpha() and its like ask for.
enum class Letters { kAlpha, kAlnum, kDecimal, kDigit, kNumeric };
bool is_all(std::string_view text, Letters kind);
// Whether there is a letter with a case and none of the other: str.islower() and str.isupper().
bool has_case(std::string_view text, bool large);
bool is_titled(std::string_view text);
// How many runs of letters, digits and underscores it has.
int64_t words_in(std::string_view text);

}  // namespace collimate::text::jinja
