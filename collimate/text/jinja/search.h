#pragma once

#include <string>

#include "collimate/text/jinja/syntax.h"

// Finds what a template may look at, whatever it is given.
namespace collimate::text::jinja {

// Returns whether the template looks up a variable of that name somewhere.
bool reads(const Node& body, const std::string& variable);
// Returns whether the word stands in it as a name, an attribute or a text.
bool mentions(const Node& body, const std::string& word);
// Returns whether the template has {% generation %} somewhere.
bool marks(const Node& body);

}  // namespace collimate::text::jinja
