#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace collimate::text {

enum class UnicodeForm { kC, kD, kKC, kKD };

// Returns the text in a normal form (UAX 15) as Hugging Face tokenizers have it, whose tables are of Unicode 9. Bytes
// that are not well-formed UTF-8 are kept.
std::string unicode_form(const std::string& text, UnicodeForm form);

// Joins what `change` makes of each well-formed run of a text, and the bytes between these.
std::string apply_to_valid(const std::string& text, const std::function<std::string(std::string_view)>& change);

// Returns whether all characters are U+0000 to U+007F.
bool is_ascii(std::string_view text);

}  // namespace collimate::text
