#pragma once

#include <string>

#include "collimate/plan/cost/functions.h"

namespace collimate::plan {

// Fixes the layout of one function: `policy.generate=tp:4,pp:2`, with the words of a placement file's layouts. Throws
// InputError for an unknown function or word, with the nearest known one, and for whatever is said twice.
void fix_layout(Request& request, const std::string& text);
// Throws InputError, with the nearest valid choice, where a fixed layout cannot be: it has more ranks than devices,
// sizes that do not divide heads or experts, or a word that such a function does not have, or it cuts a model where
// every rank holds all of it.
void check_fixed(const Request& request);

// Returns the fixed layout of a function of the request's graph; all of it is free where nothing is fixed.
const FixedLayout& fixed_of(const Request& request, const Functions& functions, size_t index);
// Returns why so many devices cannot be cut as fixed; "" when they can.
std::string why_uncut(const FixedLayout& fixed, int devices);
bool keeps_to(const FixedLayout& fixed, const Execution& how, int devices);

// words_of() returns every fixed word in a layout of its own; add_word() puts such a word into another layout.
std::vector<FixedLayout> words_of(const FixedLayout& fixed);
void add_word(FixedLayout& fixed, const FixedLayout& word);

// Writes the fixed words with their values, "tp:4,pp:2", or with the values that `how` has.
std::string fixed_text(const FixedLayout& fixed);
std::string fixed_text(const FixedLayout& fixed, const Execution& how);

}  // namespace collimate::plan
