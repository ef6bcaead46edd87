#pragma once

#include <string>
#include <string_view>

namespace collimate::text::oniguruma {

// Returns the pattern of PCRE2 (in UTF mode with Unicode classes) that matches what a pattern of Oniguruma 6.9 matches,
// in the syntax that Hugging Face's `tokenizers` reads (Oniguruma's doc/RE): ^ and $ stand at lines, (?m) lets . match
// line ends, \h is a hexadecimal digit, (?i) holds to the end of its group, {2,3}+ is repeated. Throws InputError,
// which names `where`, for what PCRE2 cannot express in this way; PCRE2 may still refuse the result.
std::string translated(std::string_view pattern, const std::string& where);

}  // namespace collimate::text::oniguruma
