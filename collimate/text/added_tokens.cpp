#include "collimate/text/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>

#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

// Start of the character that ends at `end`; end itself when the bytes before it are not well-formed.
size_t previous_character(std::string_view text, size_t end) {
  for (size_t length = 1; length <= 4 && length <= end; ++length) {
    if (utf8_length(text.substr(end - length, length)) == length) return end - length;
  }
  return end;
}

// Letters in circles and squares: symbols that Unicode calls alphabetic.
bool is_enclosed_letter(uint32_t code_point) {
  return (code_point >= 0x24B6 && code_point <= 0x24E9) || (code_point >= 0x1F130 && code_point <= 0x1F149) ||
         (code_point >= 0x1F150 && code_point <= 0x1F169) || (code_point >= 0x1F170 && code_point <= 0x1F189);
}

// \w of Unicode (UTS 18, annex C), as Hugging Face tokenizers have it: alphabetic, marks, decimal digits, connectors,
// and the joiners U+200C and U+200D.
bool is_word(uint32_t code_point) {
  if (code_point == 0x200C || code_point == 0x200D || is_enclosed_letter(code_point)) return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC;
}

bool is_space(uint32_t code_point) {
  if ((code_point >= 9 && code_point <= 13) || code_point == 0x85) return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool touches_word(std::string_view text, Span span) {
  const size_t before = previous_character(text, span.begin);
  if (before < span.begin && is_word(utf8_code_point(text.substr(before)))) return true;
  const std::string_view after = text.substr(span.end);
  return utf8_length(after) > 0 && is_word(utf8_code_point(after));
}

size_t skip_spaces_left(std::string_view text, size_t from, size_t end) {
  while (end > from) {
    const size_t before = previous_character(text, end);
    if (before == end || before < from || !is_space(utf8_code_point(text.substr(before)))) break;
    end = before;
  }
  return end;
}

size_t skip_spaces_right(std::string_view text, size_t at) {
  while (at < text.size()) {
    const size_t length = utf8_length(text.substr(at));
    if (length == 0 || !is_space(utf8_code_point(text.substr(at)))) break;
    at += length;
  }
  return at;
}

}  // namespace

void TokenMatcher::add(const AddedToken& token) {
  if (token.content.empty()) return;
  tokens_.push_back(token);
  auto& list = by_first_byte_[static_cast<unsigned char>(token.content[0])];
  list.push_back(tokens_.size() - 1);
  std::stable_sort(list.begin(), list.end(),
                   [this](size_t a, size_t b) { return tokens_[a].content.size() > tokens_[b].content.size(); });
}

const AddedToken* TokenMatcher::match_at(std::string_view text, size_t at, bool parse_special) const {
  for (const size_t index : by_first_byte_[static_cast<unsigned char>(text[at])]) {
    const AddedToken& token = tokens_[index];
    if (token.special && !parse_special) continue;
    if (text.substr(at, token.content.size()) != token.content) continue;
    if (token.single_word && touches_word(text, {at, at + token.content.size()})) continue;
    return &token;
  }
  return nullptr;
}

bool TokenMatcher::find(std::string_view text, size_t from, bool parse_special, Span& span, int32_t& id) const {
  if (tokens_.empty()) return false;
  for (size_t at = from; at < text.size(); ++at) {
    const AddedToken* token = match_at(text, at, parse_special);
    if (token == nullptr) continue;
    span = {at, at + token->content.size()};
    if (token->left_strip) span.begin = skip_spaces_left(text, from, span.begin);
    if (token->right_strip) span.end = skip_spaces_right(text, span.end);
    id = token->id;
    return true;
  }
  return false;
}

}  // namespace collimate::text
