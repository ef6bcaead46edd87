#pragma once

#include <string_view>
#include <vector>

#include "collimate/text/regex.h"

namespace collimate::text {

// What SentencePiece writes in the place of a space: U+2581.
constexpr std::string_view kSpaceMark = "\u2581";

// Appends the parts of `text`, which end before every run of space marks.
void divide_at_marks(std::string_view text, std::vector<Span>& words);

}  // namespace collimate::text
