#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collimate::text {

// Classes of characters as Hugging Face tokenizers have them, by code point. `punctuation`, `control`, `nonspacing` and
// `mark` know only what Unicode 8 or 9 had, `word` what Unicode 16 has, `numeric` and lower case what Unicode 17 has.
bool is_white_space(uint32_t code_point);
// \w of a pattern.
bool is_word(uint32_t code_point);
bool is_numeric(uint32_t code_point);
bool is_punctuation(uint32_t code_point);
// BertNormalizer's clean_text drops it, beside U+0000 and U+FFFD.
bool is_control(uint32_t code_point);
bool is_nonspacing(uint32_t code_point);
bool is_mark(uint32_t code_point);
// Normal forms there (of Unicode 9) leave it where and as it is, though those of utf8proc do not.
bool is_inert(uint32_t code_point);
// A Chinese character in the sense of BERT.
bool is_ideograph(uint32_t code_point);
// A number of the character's script in Unicode 9, one for all that Japanese is written in; -1 where it has none: of a
// space and of what Unicode 9 does not know.
int script_of(uint32_t code_point);

// Appends the lower case of one character.
void append_lower(std::string& out, uint32_t code_point);

// One character of a text, or a byte that belongs to none.
struct Character {
  uint32_t code_point = 0;  // U+FFFD for such a byte
  size_t size = 1;          // bytes
};
// The character at `at`, which is before the text's end.
Character character_at(std::string_view text, size_t at);

// Start of the character that ends at `end`; `end` itself when the bytes before it are not well-formed.
size_t previous_character(std::string_view text, size_t end);
// Where the white space before `end` begins, at or after `from`; where that at `at` ends.
size_t skip_spaces_left(std::string_view text, size_t from, size_t end);
size_t skip_spaces_right(std::string_view text, size_t at);

// A character of the same category, length in UTF-8 and script (of East Asia) that PCRE2 and utf8proc know, for one of
// Unicode 15 or 16; any other is its own.
uint32_t stand_in(uint32_t code_point);
// A text with stand-ins, for patterns, of the same length: in `buffer`, or `text` itself where there are none. `text`
// is well-formed UTF-8.
std::string_view with_stand_ins(std::string_view text, std::string& buffer);

// Gives what `append(out, code_point)` makes of each character; bytes that belong to none are kept.
template <class Append>
std::string map_characters(std::string_view text, Append append) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.size == 1 && character.code_point == 0xFFFD) {
      out += text[at];
    } else {
      append(out, character.code_point);
    }
    at += character.size;
  }
  return out;
}

}  // namespace collimate::text
