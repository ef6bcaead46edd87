#pragma once

#include <string>

#include "collimate/text/oniguruma/reader.h"

namespace collimate::text::oniguruma {

// Reads a class from behind its "[". Returns an expression of PCRE2 that matches one character of it. Classes in it are
// united with it, and && is an intersection. With `ignore_case` it holds the other cases of its members too and, unless
// it is negated, texts of several characters that equal one of them.
std::string take_class(Reader& reader, bool ignore_case);

}  // namespace collimate::text::oniguruma
