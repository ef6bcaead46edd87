#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace collimate::text {

// A word that stands in a text once, in the place of another: what it stands between.
struct Between {
  std::string before, behind;
};

// Returns the word, or one made of it, that the text does not have.
inline std::string word_outside(const std::string& text, std::string word) {
  for (int n = 0; text.find(word) != std::string::npos; ++n) word = fmt::format("{}q{}", word, n);
  return word;
}

// Returns nothing where the text has the word never or more than once.
inline std::optional<Between> split_at_word(const std::string& text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string::npos || text.find(word, at + 1) != std::string::npos) return std::nullopt;
  return Between{text.substr(0, at), text.substr(at + word.size())};
}

}  // namespace collimate::text
