#pragma once

#include <optional>
#include <string>

#include "collimate/text/oniguruma/reader.h"

namespace collimate::text::oniguruma {

// A named set of characters: `members` as PCRE2 writes them between brackets, or, negated, all that are not among them.
struct CharacterSet {
  std::string members;
  bool negated = false;

  // An expression that matches one character.
  std::string expression() const;
};

// The set that an escape stands for whose backslash is read: \d \w \s \h, their opposites, \p{…}, \P{…}; nothing where
// it is another. `in_class` tells \w between brackets, which lacks ¼, ½, ¾, ¹, ² and ³, from that outside. Names are
// those of Oniguruma 6.9 (its doc/RE). InputError for one that PCRE2 lacks.
std::optional<CharacterSet> take_set(Reader& reader, bool in_class);

// The set of a bracket ("[:alpha:]") in a class, whose "[:" is not read; nothing where there is none.
std::optional<CharacterSet> take_bracket(Reader& reader);

// The expression for \b, or negated for \B.
std::string word_boundary(bool negated);

}  // namespace collimate::text::oniguruma
