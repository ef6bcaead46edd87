#pragma once

#include <string>

#include "collimate/text/jinja/calls.h"

// Values in texts with places for them, as Python's.
namespace collimate::text::jinja {

// `format % values`: one value, those of a tuple, or by name of a dictionary.
// InputError for places that do not fit.
std::string percent_format(const std::string& format, const Value& values);
// str.format(): the first of the arguments is the text.
std::string brace_format(const Arguments& arguments);
// The text with blanks beside it up to so many characters: < > or ^.
std::string padded(const std::string& text, int64_t width, char align, const std::string& fill = " ");

}  // namespace collimate::text::jinja
