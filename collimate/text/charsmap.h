#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

// Holds SentencePiece's compiled table of replacements ("precompiled_charsmap"): a double-array trie (Darts-clone)
// whose values are offsets into a text of replacements, each ended by a zero byte. Immutable.
class Charsmap {
 public:
  // Throws InputError, which names `where`, for bytes that are no such table.
  Charsmap(std::string_view bytes, const std::string& where);

  // Replaces as Hugging Face tokenizers do: a user-perceived character (grapheme) of fewer than 6 bytes that begins
  // with a key becomes the replacement of the shortest such key; in any other grapheme each character that begins with
  // a key does.
  std::string replace_graphemes(std::string_view text) const;
  // Replaces as SentencePiece itself does: the longest key that the rest of the text begins with, again and again.
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

// Decodes standard base64 (RFC 4648). Throws InputError, which names `where`, for any other character.
std::string from_base64(std::string_view text, const std::string& where);

}  // namespace collimate::text
