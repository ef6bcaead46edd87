#include "collimate/cli/shell_word.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace collimate::cli {
namespace {

constexpr std::string_view kPlain = "_-./:,=+@%";                            // need no quotes, like letters and digits
constexpr std::string_view kBreakNames = "nr'\\", kBreakValues = "\n\r'\\";  // escapes in $'…': letters, characters

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos;
}

// Replaces every character of `from` in the word by a backslash and the character at the same place of `to`.
std::string with_escapes(const std::string& word, std::string_view from, std::string_view to) {
  std::string text;
  for (const char c : word) {
    const size_t found = from.find(c);
    if (found == std::string_view::npos)
      text += c;
    else
      text += {'\\', to[found]};
  }
  return text;
}

// Returns the word in '…', which has no escapes: each quote in it is written as '\'', that is, outside of the quotes.
std::string in_quotes(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string shell_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  if (word.find_first_of("\n\r") == std::string::npos) return in_quotes(word);
  return "$'" + with_escapes(word, kBreakValues, kBreakNames) + "'";
}

}  // namespace collimate::cli
