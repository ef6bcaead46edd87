#pragma once

#include <string>
#include <string_view>

namespace collimate::text {

// These functions spell bytes as printable characters, as GPT-2 does. `from_byte_spelling` is the inverse of the
// others; it returns a text unchanged that is not wholly in that spelling.
std::string to_byte_spelling(unsigned char byte);
void append_byte_spelling(std::string& out, std::string_view bytes);
std::string byte_spelling_of(std::string_view bytes);
std::string from_byte_spelling(const std::string& text);

}  // namespace collimate::text
