#include "collimate/text/oniguruma/folds.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <set>

#include "collimate/text/oniguruma/reader.h"
#include "collimate/text/regex.h"
#include "collimate/text/utf8.h"

namespace collimate::text::oniguruma {
namespace {

constexpr uint32_t kDottedI = 0x130;  // the one capital whose small letter, i, is not its equal

std::u32string full_fold(uint32_t code_point) {
  std::array<utf8proc_int32_t, 8> folded{};
  int boundary = 0;
  const auto size = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), folded.data(), folded.size(),
                                            UTF8PROC_CASEFOLD, &boundary);
  return {folded.begin(), folded.begin() + size};
}

uint32_t small_letter(uint32_t code_point) {
  return static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point)));
}

Folds make_folds() {
  Folds out;
  for (uint32_t code_point = 0; code_point < 0x20000; ++code_point) {
    if (code_point >= 0xD800 && code_point < 0xE000) continue;
    const std::u32string full = full_fold(code_point);
    if (full.size() > 1) {
      out.full[code_point] = full;
      out.characters[full].push_back(code_point);
    }
    const uint32_t one = full.size() == 1 ? full[0] : code_point == kDottedI ? kDottedI : small_letter(code_point);
    if (one != code_point) out.one[code_point] = one;
  }
  for (const auto& [code_point, one] : out.one) out.groups[one].push_back(code_point);
  for (auto& [one, group] : out.groups) group.push_back(one);
  return out;
}

std::string text_of(std::u32string_view characters) {
  std::string out;
  for (const uint32_t character : characters) out += literal(character);
  return out;
}

std::string alternatives(std::u32string_view characters, const std::vector<uint32_t>& equal) {
  std::string out = "(?:";
  out += text_of(characters);
  for (const uint32_t character : equal) out.append("|").append(literal(character));
  return out += ")";
}

// Returns the longest run of characters from `at` on that equals one character, folded; "" where there is none.
std::u32string longest_folded(const std::u32string& text, size_t at) {
  for (size_t size = std::min<size_t>(3, text.size() - at); size > 1; --size) {
    std::u32string folded;
    for (size_t i = 0; i < size; ++i) folded += folds().folded(text[at + i]);
    if (folds().characters.contains(folded)) return folded;
  }
  return {};
}

bool matches(const Regex& regex, uint32_t code_point) {
  std::string text;
  append_utf8(text, code_point);
  Span match;
  return regex.find(text, 0, match);
}

}  // namespace

uint32_t Folds::folded(uint32_t code_point) const {
  const auto found = one.find(code_point);
  return found == one.end() ? code_point : found->second;
}

const Folds& folds() {
  static const Folds table = make_folds();
  return table;
}

std::string caseless_literal(const std::u32string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto full = folds().full.find(text[at]);
    const std::u32string several = full == folds().full.end() ? longest_folded(text, at) : full->second;
    out += several.empty() ? literal(text[at]) : alternatives(several, folds().characters.at(several));
    at += full == folds().full.end() && !several.empty() ? several.size() : 1;
  }
  return out;
}

OtherCases other_cases(const std::string& one_character) {
  const Regex regex("\\A" + one_character + "\\z");
  OtherCases out;
  for (const auto& [one, group] : folds().groups) {
    const auto has = [&](uint32_t code_point) { return matches(regex, code_point); };
    const size_t count = static_cast<size_t>(std::count_if(group.begin(), group.end(), has));
    if (count == 0 || count == group.size()) continue;
    for (const uint32_t code_point : group)
      if (!has(code_point)) out.members += literal(code_point);
  }
  const Regex all("\\A(?:" + one_character + (out.members.empty() ? "" : "|[" + out.members + "]") + ")\\z");
  for (const auto& [several, equal] : folds().characters)
    if (std::any_of(equal.begin(), equal.end(), [&](uint32_t character) { return matches(all, character); }))
      out.texts.push_back("(?i:" + alternatives(several, equal) + ")");
  return out;
}

}  // namespace collimate::text::oniguruma
