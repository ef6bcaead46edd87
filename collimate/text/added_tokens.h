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
  bool normalized = false;   // the token is looked for in the normalized text
  bool spelled = false;      // its content already has the form of normalized text
  bool weighed = false;      // the matcher leaves it out: the model weighs it against other cuts
  bool single_word = false;  // matches only where no letter, digit or underscore touches it
  bool left_strip = false;   // the match takes the white space before it
  bool right_strip = false;
};

// Finds added tokens in a text: the leftmost match, and the longest of those at one place. Takes time linear in the
// text for a fixed list of tokens.
class TokenMatcher {
 public:
  void add(const AddedToken& token);
  bool empty() const { return tokens_.empty(); }
  // Finds the first match at or after `from`; false where there is none. `span` holds the white space that the match
  // takes too, but never begins before `from`.
  bool find(std::string_view text, size_t from, bool parse_special, Span& span, int32_t& id) const;

 private:
  const AddedToken* match_at(std::string_view text, size_t at, bool parse_special) const;
  std::vector<AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  // longest content first
};

}  // namespace collimate::text
