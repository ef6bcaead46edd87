#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace collimate::text {

// The texts on both sides of a word that stands once in a text, in the place of another text.
struct Between {
  std::string before, behind;
};

// Returns the word, or a longer one made of it, which does not stand in the text.
inline std::string word_outside(const std::string& text, std::string word) {
  for (int n = 0; text.find(word) != std::string::npos; ++n) word = fmt::format("{}q{}", word, n);
  return word;
}

// Returns the texts on both sides of the word; nothing where the text has the word never or more than once.
inline std::optional<Between> split_at_word(const std::string& text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string::npos || text.find(word, at + 1) != std::string::npos) return std::nullopt;
  return Between{text.substr(0, at), text.substr(at + word.size())};
}

}  // namespace collimate::text
