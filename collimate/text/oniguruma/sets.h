#pragma once

#include <optional>
#include <string>

#include "collimate/text/oniguruma/reader.h"

namespace collimate::text::oniguruma {

// A set of characters: `members` as PCRE2 writes them between brackets or, if negated, all that are not among them.
struct CharacterSet {
  std::string members;
  bool negated = false;

  // Returns an expression that matches one character.
  std::string expression() const;
};

// Reads the set that an escape stands for, whose backslash has been read: \d \w \s \h, their opposites, \p{…},
// \P{…}; nothing where it is another. `in_class` says that the escape stands between brackets, where \w lacks ¼, ½,
// ¾, ¹, ² and ³. Names are those of Oniguruma 6.9 (its doc/RE). Throws InputError for one that PCRE2 lacks.
std::optional<CharacterSet> take_set(Reader& reader, bool in_class);

// Reads the set of a bracket in a class, from its "[:" on ("[:alpha:]"); nothing where there is none.
std::optional<CharacterSet> take_bracket(Reader& reader);

// Returns the expression for \b, or for \B with `negated`.
std::string word_boundary(bool negated);

}  // namespace collimate::text::oniguruma
