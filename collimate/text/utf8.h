#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collimate::text {

// Returns the length in bytes of the well-formed UTF-8 character at the start of `text` (RFC 3629: no surrogates, no
// overlong forms), 0 when there is none.
size_t utf8_length(std::string_view text);

// Returns true when `text` is a proper beginning of a well-formed character, so that more bytes could complete it.
bool utf8_unfinished(std::string_view text);

// Returns the code point of the character at the start; `text` must start with a well-formed one.
uint32_t utf8_code_point(std::string_view text);
void append_utf8(std::string& out, uint32_t code_point);
// Returns the columns of a terminal that a character takes: 0 for those that combine, 2 for wide ones.
int character_width(uint32_t code_point);

// Returns how many bytes at the start of `text` are whole well-formed characters.
size_t valid_run(std::string_view text);
bool is_valid_utf8(std::string_view text);

// Returns the text with every byte that belongs to no well-formed character replaced by U+FFFD: for JSON, logs and
// terminals.
std::string valid_utf8(std::string_view text);

}  // namespace collimate::text
