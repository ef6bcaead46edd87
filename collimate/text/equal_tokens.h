#pragma once

#include "collimate/text/tokenizer.h"

namespace collimate::text {

// A model that guesses tokens for another has to mean the same by their ids. InputError naming the first that differs.
void require_equal_tokens(const Tokenizer& model, const Tokenizer& draft);

}  // namespace collimate::text
