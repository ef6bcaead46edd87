#include "collimate/text/jinja/letters.h"

#include <utf8proc.h>

#include <algorithm>

#include "collimate/text/characters.h"
#include "collimate/text/utf8.h"

namespace collimate::text::jinja {
namespace {

int32_t code(uint32_t code_point) { return static_cast<int32_t>(code_point); }
uint32_t large_of(uint32_t c) { return static_cast<uint32_t>(utf8proc_toupper(code(c))); }
uint32_t small_of(uint32_t c) { return static_cast<uint32_t>(utf8proc_tolower(code(c))); }

void append_upper(std::string& out, uint32_t c) {
  if (c == 0xDF) {
    out += "SS";
  } else {
    append_utf8(out, large_of(c));
  }
}
// Appends the first letter of a word.
void append_title(std::string& out, uint32_t c) {
  if (c == 0xDF) {
    out += "Ss";
  } else {
    append_utf8(out, static_cast<uint32_t>(utf8proc_totitle(code(c))));
  }
}
void append_small(std::string& out, uint32_t c) { append_utf8(out, small_of(c)); }

int category(uint32_t c) { return utf8proc_category(code(c)); }
bool is_large(uint32_t c) { return category(c) == UTF8PROC_CATEGORY_LU || category(c) == UTF8PROC_CATEGORY_LT; }
bool is_cased(uint32_t c) { return is_large(c) || category(c) == UTF8PROC_CATEGORY_LL; }

bool is_of(uint32_t c, Letters kind) {
  const int of = category(c);
  const bool alpha = of >= UTF8PROC_CATEGORY_LU && of <= UTF8PROC_CATEGORY_LO;
  const bool decimal = of == UTF8PROC_CATEGORY_ND;
  const bool superscript = c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
                           (c >= 0x2080 && c <= 0x2089);
  switch (kind) {
    case Letters::kAlpha:
      return alpha;
    case Letters::kDecimal:
      return decimal;
    case Letters::kDigit:
      return decimal || superscript;
    case Letters::kNumeric:
      return decimal || of == UTF8PROC_CATEGORY_NL || of == UTF8PROC_CATEGORY_NO;
    default:
      return alpha || is_of(c, Letters::kNumeric);
  }
}

template <class Visit>
void each(std::string_view text, const Visit& visit) {
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    visit(character.code_point);
    at += character.size;
  }
}

}  // namespace

std::string lower(std::string_view text) { return map_characters(text, append_small); }
std::string upper(std::string_view text) { return map_characters(text, append_upper); }

std::string capitalized(std::string_view text) {
  bool begins = true;
  return map_characters(text, [&](std::string& out, uint32_t c) {
    begins ? append_title(out, c) : append_small(out, c);
    begins = false;
  });
}

std::string titled(std::string_view text) {
  bool begins = true;
  return map_characters(text, [&](std::string& out, uint32_t c) {
    begins ? append_title(out, c) : append_small(out, c);
    begins = !is_cased(c);
  });
}

std::string swapped(std::string_view text) {
  return map_characters(
      text, [](std::string& out, uint32_t c) { is_large(c) ? append_small(out, c) : append_upper(out, c); });
}

bool is_all(std::string_view text, Letters kind) {
  bool all = !text.empty();
  each(text, [&](uint32_t c) { all = all && is_of(c, kind); });
  return all;
}

bool has_case(std::string_view text, bool large) {
  bool has = false, other = false;
  each(text, [&](uint32_t c) {
    has = has || (is_cased(c) && is_large(c) == large);
    other = other || (is_cased(c) && is_large(c) != large);
  });
  return has && !other;
}

bool is_titled(std::string_view text) {
  bool has = false, wrong = false, before = false;
  each(text, [&](uint32_t c) {
    wrong = wrong || (is_cased(c) && is_large(c) == before);
    before = is_cased(c);
    has = has || before;
  });
  return has && !wrong;
}

int64_t words_in(std::string_view text) {
  int64_t words = 0;
  bool within = false;
  each(text, [&](uint32_t c) {
    const bool is_part = c == '_' || is_of(c, Letters::kAlnum);
    words += is_part && !within ? 1 : 0;
    within = is_part;
  });
  return words;
}

}  // namespace collimate::text::jinja
