#pragma once

#include <string>

#include "collimate/text/oniguruma/reader.h"

namespace collimate::text::oniguruma {

// Reads a class, whose "[" is read: an expression of PCRE2 that matches one character of it. Classes in it are
// united with it, && is an intersection. Ignoring case it holds the other cases of its members, and, unless it is
// negated, texts of several characters that equal one of them.
std::string take_class(Reader& reader, bool ignore_case);

}  // namespace collimate::text::oniguruma
