#pragma once

#include <string>

#include "collimate/text/jinja/syntax.h"

// Finds what a template may look at, whatever it is given.
namespace collimate::text::jinja {

// The template looks a variable of that name up somewhere.
bool reads(const Node& body, const std::string& variable);
// The word stands in it as a name, an attribute or a text.
bool mentions(const Node& body, const std::string& word);
// The template has {% generation %} somewhere.
bool marks(const Node& body);

}  // namespace collimate::text::jinja
