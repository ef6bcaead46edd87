#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/text/regex.h"

namespace collimate::text {

// The pattern {"Regex": text} of the tokenizer file `where`, whose syntax is that of Oniguruma in Hugging Face's
// `tokenizers`: a class may hold others, `[a-c[x-z]]`, whose members are its own. Throws InputError at `where` for what
// PCRE2 cannot say (an inner class `[^`, an intersection `&&`) or does not compile.
Regex read_file_regex(const nlohmann::json& pattern, const std::string& where);

}  // namespace collimate::text
