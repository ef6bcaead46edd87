#pragma once

#include <string>

#include "collimate/text/tokenizer.h"

namespace collimate::text {

// A tokenizer beside a model's own, as that of a draft model, has to mean the same by its ids. InputError naming the
// first that differs; `other_name` is what holds the other tokenizer.
void require_equal_tokens(const Tokenizer& model, const Tokenizer& other, const std::string& other_name);

}  // namespace collimate::text
