#pragma once

#include <map>
#include <string>

#include "collimate/text/jinja/calls.h"

namespace collimate::text::jinja {

using Filter = Value (*)(const Arguments&);
// Filters of texts, and those of lists and dictionaries.
const std::map<std::string, Filter>& text_filters();
const std::map<std::string, Filter>& list_filters();

// The text of what a filter or test is of.
std::string text_of(const Arguments& a);
// The text with & < > ' " as HTML writes them.
std::string escaped(const std::string& text);

}  // namespace collimate::text::jinja
