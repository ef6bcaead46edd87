#pragma once

#include <string>

#include "collimate/text/jinja/calls.h"

// These functions put values into the places that a text has for them, as Python does.
namespace collimate::text::jinja {

// Returns `format % values`, where the values are one, those of a tuple, or by name those of a dictionary. Throws
// InputError for places that do not fit.
std::string percent_format(const std::string& format, const Value& values);
// Returns str.format(); the first of the arguments is the text.
std::string brace_format(const Arguments& arguments);
// Returns the text, filled with `fill` to `width` characters and aligned by < > or ^.
std::string padded(const std::string& text, int64_t width, char align, const std::string& fill = " ");

}  // namespace collimate::text::jinja
