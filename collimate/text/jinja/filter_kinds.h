#pragma once

#include <map>
#include <string>

#include "collimate/text/jinja/calls.h"

namespace collimate::text::jinja {

using Filter = Value (*)(const Arguments&);
// The first returns the filters of texts, the second those of lists and dictionaries.
const std::map<std::string, Filter>& text_filters();
const std::map<std::string, Filter>& list_filters();

// Returns the text of the value that a filter or test is applied to.
std::string text_of(const Arguments& a);
// Returns the text with & < > ' " as HTML writes them.
std::string escaped(const std::string& text);

}  // namespace collimate::text::jinja
