#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collimate::text {

// These functions tell the class of a character, by code point, as Hugging Face tokenizers see it. is_punctuation,
// is_control, is_nonspacing and is_mark know only the characters of Unicode 8 or 9, is_word those of Unicode 16,
// is_numeric and append_lower those of Unicode 17.
bool is_white_space(uint32_t code_point);
// Returns whether \w of a pattern matches the character.
bool is_word(uint32_t code_point);
bool is_numeric(uint32_t code_point);
bool is_punctuation(uint32_t code_point);
// Returns whether BertNormalizer's clean_text drops the character as a control; it drops U+0000 and U+FFFD too.
bool is_control(uint32_t code_point);
bool is_nonspacing(uint32_t code_point);
bool is_mark(uint32_t code_point);
// Returns whether the normal forms of Hugging Face tokenizers (of Unicode 9) leave the character where and as it is,
// while those of utf8proc do not.
bool is_inert(uint32_t code_point);
// Returns whether BERT takes the character for a Chinese one.
bool is_ideograph(uint32_t code_point);
// Returns a number for the character's script in Unicode 9, one number for all scripts of Japanese; -1 for U+0020 and
// for a character that Unicode 9 does not know.
int script_of(uint32_t code_point);

// Appends the lower case of one character.
void append_lower(std::string& out, uint32_t code_point);

// One character of a text, or one byte that belongs to no well-formed character.
struct Character {
  uint32_t code_point = 0;  // U+FFFD for such a byte
  size_t size = 1;          // bytes
};
// Returns the character at `at`, which lies before the text's end.
Character character_at(std::string_view text, size_t at);

// Returns where the character begins that ends at `end`; `end` itself when the bytes before it are not well-formed.
size_t previous_character(std::string_view text, size_t end);
// The first returns where the white space before `end` begins, at or after `from`; the second, where the white space at
// `at` ends.
size_t skip_spaces_left(std::string_view text, size_t from, size_t end);
size_t skip_spaces_right(std::string_view text, size_t at);

// Returns a stand-in for a character of Unicode 15 or 16: one that PCRE2 and utf8proc know, of the same category,
// length in UTF-8 and script (of East Asia). Returns any other character itself.
uint32_t stand_in(uint32_t code_point);
// Returns the text with stand-ins, for patterns, at the same length: in `buffer`, or `text` itself where it needs none.
// `text` is well-formed UTF-8.
std::string_view with_stand_ins(std::string_view text, std::string& buffer);

// Joins what `append(out, code_point)` writes for each character; bytes that belong to no character are kept.
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
