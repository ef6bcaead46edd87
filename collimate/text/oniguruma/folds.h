#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace collimate::text::oniguruma {

// Says which characters are equal where letter case is ignored (CaseFolding.txt of Unicode, without the Turkish i).
struct Folds {
  std::map<uint32_t, uint32_t> one;                            // a character of several cases: the one that it folds to
  std::map<uint32_t, std::vector<uint32_t>> groups;            // a folded character: all that fold to it, and itself
  std::map<uint32_t, std::u32string> full;                     // a character that equals several: these, folded
  std::map<std::u32string, std::vector<uint32_t>> characters;  // several, folded: the characters that equal them

  uint32_t folded(uint32_t code_point) const;
};
const Folds& folds();

// Returns a literal in which letter case is ignored, as a part of a PCRE2 pattern. Several characters that equal one,
// and one that equals several, become alternatives. The longest from the left on count, as in Oniguruma.
std::string caseless_literal(const std::u32string& text);

// Holds what a class holds beyond `one_character`, an expression in which case counts, where case is ignored: the other
// cases of its characters, and the texts of several characters that equal one of them, as expressions.
struct OtherCases {
  std::string members;
  std::vector<std::string> texts;
};
OtherCases other_cases(const std::string& one_character);

}  // namespace collimate::text::oniguruma
