#pragma once

#include <string_view>
#include <vector>

#include "collimate/text/regex.h"

namespace collimate::text {

// SentencePiece writes U+2581 in the place of a space.
constexpr std::string_view kSpaceMark = "\u2581";

// Appends the parts of `text`: one ends before every run of space marks.
void divide_at_marks(std::string_view text, std::vector<Span>& words);

}  // namespace collimate::text
