#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/text/regex.h"

namespace collimate::text {

// Returns the pattern {"Regex": text} of the tokenizer file `where`, in the syntax of Oniguruma, with which Hugging
// Face's `tokenizers` reads it (oniguruma/translate.h). Throws InputError, which names `where`, for what PCRE2 cannot
// express or compile.
Regex read_file_regex(const nlohmann::json& pattern, const std::string& where);

}  // namespace collimate::text
