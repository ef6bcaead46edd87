#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

// SentencePiece's compiled table of replacements ("precompiled_charsmap"): a double-array trie (Darts-clone) whose
// values are places in a text of replacements, each ended by a zero byte. Immutable.
class Charsmap {
 public:
  // InputError at `where` for bytes that are no such table.
  Charsmap(std::string_view bytes, const std::string& where);

  // Hugging Face tokenizers' reading: each user-perceived character (grapheme) of fewer than 6 bytes that begins with a
  // key becomes the replacement of the shortest such key; in all others each character does.
  std::string replace_graphemes(std::string_view text) const;
  // SentencePiece's own: the longest key, again and again.
  std::string replace_longest(std::string_view text) const;

 private:
  struct Match {
    size_t size = 0;  // bytes of the key; 0: none
    uint32_t place = 0;
  };
  Match match(std::string_view text, bool longest) const;
  std::string_view replacement(uint32_t place) const;
  bool append_replacement(std::string& out, std::string_view chunk) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

// Standard base64 (RFC 4648). InputError at `where`.
std::string from_base64(std::string_view text, const std::string& where);

}  // namespace collimate::text
