#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace collimate::text::oniguruma {

// Which characters are equal where letter case is ignored (CaseFolding.txt of Unicode, without the Turkish i).
struct Folds {
  std::map<uint32_t, uint32_t> one;                            // a character of several cases: what it folds to alone
  std::map<uint32_t, std::vector<uint32_t>> groups;            // what characters fold to: those characters
  std::map<uint32_t, std::u32string> full;                     // a character that equals several: these, folded
  std::map<std::u32string, std::vector<uint32_t>> characters;  // several, folded: the characters that equal them

  uint32_t folded(uint32_t code_point) const;
};
const Folds& folds();

// A literal in which letter case is ignored, as a part of a PCRE2 pattern: what equals several characters, or is equal
// to, is an alternative. The longest from the left on count, as in Oniguruma.
std::string caseless_literal(const std::u32string& text);

// Ignoring case, a class holds more than `one_character`, an expression in which case counts: the other cases of its
// characters, then the texts of several characters that equal one of them, as expressions.
struct OtherCases {
  std::string members;
  std::vector<std::string> texts;
};
OtherCases other_cases(const std::string& one_character);

}  // namespace collimate::text::oniguruma
