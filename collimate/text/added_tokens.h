#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/text/regex.h"

namespace collimate::text {

// A token that is recognised in the text before any model sees it, as tokenizer.json's "added_tokens" describe it.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;
  bool normalized = false;   // looked for in the normalized text
  bool spelled = false;      // its content is spelled as normalized text already
  bool weighed = false;      // not looked for: the model weighs it against other cuts
  bool single_word = false;  // only where no letter, digit or underscore touches it
  bool left_strip = false;   // takes the white space before it
  bool right_strip = false;
};

// Finds added tokens in a text: leftmost, and of those the longest. Time linear in the text for a fixed list.
class TokenMatcher {
 public:
  void add(const AddedToken& token);
  bool empty() const { return tokens_.empty(); }
  // The first match at or after `from`; white space that it takes belongs to `span`, never reaching before `from`.
  bool find(std::string_view text, size_t from, bool parse_special, Span& span, int32_t& id) const;

 private:
  const AddedToken* match_at(std::string_view text, size_t at, bool parse_special) const;
  std::vector<AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  // longest content first
};

}  // namespace collimate::text
