#include "collimate/text/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "collimate/text/newer_characters.h"
#include "collimate/text/scripts.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

int category_of(uint32_t code_point) { return utf8proc_category(static_cast<utf8proc_int32_t>(code_point)); }

// Returns the range that holds a code point; nullptr where none does.
template <class Range, size_t kSize>
const Range* range_of(const Range (&ranges)[kSize], uint32_t code_point) {
  const auto* range = std::upper_bound(std::begin(ranges), std::end(ranges), code_point,
                                       [](uint32_t value, const Range& candidate) { return value < candidate.first; });
  return range != std::begin(ranges) && code_point <= std::prev(range)->last ? std::prev(range) : nullptr;
}

template <size_t kSize>
bool is_among(const CodePoints (&ranges)[kSize], uint32_t code_point) {
  return range_of(ranges, code_point) != nullptr;
}

// Returns the category, that of Unicode 16 where utf8proc does not know the character.
int category_today(uint32_t code_point) {
  const int category = category_of(code_point);
  return category == UTF8PROC_CATEGORY_CN ? category_of(stand_in(code_point)) : category;
}

// Returns whether this is a letter in a circle or square, one of the symbols that Unicode calls alphabetic.
bool is_enclosed_letter(uint32_t code_point) {
  return (code_point >= 0x24B6 && code_point <= 0x24E9) || (code_point >= 0x1F130 && code_point <= 0x1F149) ||
         (code_point >= 0x1F150 && code_point <= 0x1F169) || (code_point >= 0x1F170 && code_point <= 0x1F189);
}

bool is_ascii_letter(uint32_t code_point) { return (code_point | 0x20) >= 'a' && (code_point | 0x20) <= 'z'; }
bool is_ascii_digit(uint32_t code_point) { return code_point >= '0' && code_point <= '9'; }

static_assert(kStandIns[0].first >= 0x800);

}  // namespace

bool is_white_space(uint32_t code_point) {
  if (code_point < 0x80) return code_point == ' ' || (code_point >= 9 && code_point <= 13);
  const int category = category_of(code_point);
  return code_point == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

// Word characters are Unicode's (UTS 18, annex C): alphabetic, marks, decimal digits, connectors, and the joiners
// U+200C and U+200D.
bool is_word(uint32_t code_point) {
  if (code_point < 0x80) return is_ascii_letter(code_point) || is_ascii_digit(code_point) || code_point == '_';
  if (code_point == 0x200C || code_point == 0x200D || is_enclosed_letter(code_point)) return true;
  const int category = category_today(code_point);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC;
}

bool is_numeric(uint32_t code_point) {
  if (code_point < 0x80) return is_ascii_digit(code_point);
  const int category = category_today(code_point);
  return (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) || is_among(kNewestNumbers, code_point);
}

bool is_punctuation(uint32_t code_point) {
  if (code_point < 0x80)
    return code_point > ' ' && code_point < 0x7F && !is_ascii_letter(code_point) && !is_ascii_digit(code_point);
  const int category = category_of(code_point);
  const bool now = category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
  return (now && !is_among(kNotPunctuation, code_point)) || code_point == 0x166D || code_point == 0x111C9;
}

bool is_control(uint32_t code_point) {
  if (code_point == '\t' || code_point == '\n' || code_point == '\r') return false;
  const int category = category_of(code_point);
  const bool now = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                   category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS;
  return now && !is_among(kNotControl, code_point);
}

bool is_nonspacing(uint32_t code_point) {
  if (code_point < 0x80) return false;
  const bool now = category_of(code_point) == UTF8PROC_CATEGORY_MN;
  return (now && !is_among(kNotNonspacing, code_point)) || code_point == 0x1734;
}

bool is_mark(uint32_t code_point) {
  if (code_point < 0x80) return false;
  const int category = category_of(code_point);
  const bool now = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
  return (now && !is_among(kNotMark, code_point)) || code_point == 0x1CF2 || code_point == 0x1CF3;
}

bool is_inert(uint32_t code_point) { return code_point >= 0x300 && is_among(kInert, code_point); }

// The blocks are those that BERT's tokenization.py names, as Hugging Face tokenizers have them.
bool is_ideograph(uint32_t code_point) {
  static constexpr CodePoints kBlocks[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                           {0x20000, 0x2A6DF}, {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF},
                                           {0x2F800, 0x2FA1F}};
  return code_point >= 0x3400 && is_among(kBlocks, code_point);
}

int script_of(uint32_t code_point) {
  const ScriptRange* range = range_of(kScripts, code_point);
  return range == nullptr ? -1 : range->script;
}

void append_lower(std::string& out, uint32_t code_point) {
  if (code_point == 0x130) {  // the one character whose lower case is two: i and a dot above
    out += "i\u0307";
    return;
  }
  const Replacement* newest = range_of(kNewestLower, code_point);
  append_utf8(out, newest != nullptr
                       ? newest->by + (code_point - newest->first)
                       : static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))));
}

uint32_t stand_in(uint32_t code_point) {
  const Replacement* range = range_of(kStandIns, code_point);
  return range == nullptr ? code_point : range->by;
}

std::string_view with_stand_ins(std::string_view text, std::string& buffer) {
  bool changed = false;
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0xE0) {  // one or two bytes: none has a stand-in
      ++at;
      continue;
    }
    const Character character = character_at(text, at);
    if (const uint32_t other = stand_in(character.code_point); other != character.code_point) {
      if (!changed) buffer.assign(text);
      changed = true;
      std::string spelled;
      append_utf8(spelled, other);
      buffer.replace(at, character.size, spelled);
    }
    at += character.size;
  }
  return changed ? std::string_view(buffer) : text;
}

Character character_at(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {byte, 1};
  const size_t size = utf8_length(text.substr(at, 4));
  if (size == 0) return {0xFFFD, 1};
  return {utf8_code_point(text.substr(at, size)), size};
}

size_t previous_character(std::string_view text, size_t end) {
  for (size_t length = 1; length <= 4 && length <= end; ++length) {
    if (utf8_length(text.substr(end - length, length)) == length) return end - length;
  }
  return end;
}

size_t skip_spaces_left(std::string_view text, size_t from, size_t end) {
  while (end > from) {
    const size_t before = previous_character(text, end);
    if (before == end || before < from || !is_white_space(utf8_code_point(text.substr(before)))) break;
    end = before;
  }
  return end;
}

size_t skip_spaces_right(std::string_view text, size_t at) {
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0 || !is_white_space(utf8_code_point(text.substr(at)))) break;
    at += length;
  }
  return at;
}

}  // namespace collimate::text
