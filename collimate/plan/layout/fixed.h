#pragma once

#include <string>

#include "collimate/plan/cost/functions.h"

namespace collimate::plan {

// Fixes the layout of one function: `policy.generate=tp:4,pp:2`, with the words of a placement file's layouts.
// InputError with the nearest function or word for one that is unknown, and for what is said twice.
void fix_layout(Request& request, const std::string& text);
// InputError with the nearest valid choice where what is fixed cannot be: more ranks than devices, sizes that do not
// divide heads or experts, what such a function does not have, a cut model where every rank holds all of it.
void check_fixed(const Request& request);

// Gives what is fixed of a function of the request's graph; all of it free where nothing is.
const FixedLayout& fixed_of(const Request& request, const Functions& functions, size_t index);
// Why so many devices cannot be cut like that; "" when they can.
std::string why_uncut(const FixedLayout& fixed, int devices);
bool keeps_to(const FixedLayout& fixed, const Execution& how, int devices);

// Every word that is fixed, in a layout of its own; and that word in another layout.
std::vector<FixedLayout> words_of(const FixedLayout& fixed);
void add_word(FixedLayout& fixed, const FixedLayout& word);

// The fixed words with their values: "tp:4,pp:2"; and with the values that `how` has.
std::string fixed_text(const FixedLayout& fixed);
std::string fixed_text(const FixedLayout& fixed, const Execution& how);

}  // namespace collimate::plan
