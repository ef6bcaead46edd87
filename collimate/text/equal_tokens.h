#pragma once

#include <string>

#include "collimate/text/tokenizer.h"

namespace collimate::text {

// Throws InputError, which names the first id that differs, unless both tokenizers mean the same by every id, as that
// of a draft model has to. `other_name` names what holds the other tokenizer.
void require_equal_tokens(const Tokenizer& model, const Tokenizer& other, const std::string& other_name);

}  // namespace collimate::text
