#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/text/regex.h"

namespace collimate::text {

// Appends the parts of the range `piece` of `text` in order. The range is well-formed UTF-8.
using Splitter = std::function<void(std::string_view text, Span piece, std::vector<Span>& parts)>;

// Says what becomes of the parts of a text that a pattern matches.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Returns the behavior of that name. Throws InputError, which names `where`, for an unknown name.
Behavior parse_behavior(const std::string& name, const std::string& where);

// Splits at matches of a pattern; with `invert`, at what lies between them.
Splitter regex_splitter(Regex pattern, Behavior behavior, bool invert);

// Splits at a text, which is not empty.
Splitter text_splitter(const std::string& text, Behavior behavior, bool invert);

// Splits at every character of a class.
Splitter character_splitter(std::function<bool(uint32_t code_point)> matches, Behavior behavior);

// Splits between runs of characters with the same number; runs of a negative number are removed.
Splitter run_splitter(std::function<int(uint32_t code_point)> number);

// Splits where the script changes. Characters of no script stay with those before them. At the front of a piece they
// are removed, unless a byte that is not part of well-formed UTF-8 stands before it.
Splitter script_splitter();

// Splits into parts of `characters` characters; the last part may have fewer.
Splitter length_splitter(size_t characters);

}  // namespace collimate::text
