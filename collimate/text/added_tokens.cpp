#include "collimate/text/added_tokens.h"

#include <algorithm>

#include "collimate/text/characters.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

bool touches_word(std::string_view text, Span span) {
  const size_t before = previous_character(text, span.begin);
  if (before < span.begin && is_word(utf8_code_point(text.substr(before)))) return true;
  const std::string_view after = text.substr(span.end);
  return utf8_length(after) > 0 && is_word(utf8_code_point(after));
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
