#include "collimate/cli/shell_words.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "collimate/base/error.h"

namespace collimate::cli {
namespace {

constexpr std::string_view kPlain = "_-./:,=+@%";                            // beside letters and digits
constexpr std::string_view kBreakNames = "nr'\\", kBreakValues = "\n\r'\\";  // after a backslash in $'…'

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos;
}

// Every character of `from` in the word becomes what stands before it, a backslash and its name in `to`.
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

// '…' has no escapes: a quote ends it, stands alone behind a backslash, and begins the next.
std::string in_quotes(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

class WordReader {
 public:
  WordReader(const std::string& line, const std::string& where) : line_(line), where_(where) {}

  std::vector<std::string> words() {
    std::vector<std::string> found;
    while (skip_blanks()) found.push_back(word());
    return found;
  }

 private:
  bool blank() const { return line_[at_] == ' ' || line_[at_] == '\t'; }
  bool skip_blanks() {
    while (at_ < line_.size() && blank()) ++at_;
    return at_ < line_.size();
  }

  std::string word() {
    std::string text;
    while (at_ < line_.size() && !blank()) {
      const char c = line_[at_++];
      const bool last = at_ == line_.size();
      if (c == '\'') {
        text += quoted('\'', "", "");
      } else if (c == '"') {
        text += quoted('"', "\"\\$`", "\"\\$`");
      } else if (c == '$' && !last && line_[at_] == '\'') {
        ++at_;
        text += quoted('\'', kBreakNames, kBreakValues);
      } else {
        text += c == '\\' && !last ? line_[at_++] : c;
      }
    }
    return text;
  }

  // Up to the closing quote. A backslash before one of `names` stands for the value at its place.
  std::string quoted(char close, std::string_view names, std::string_view values) {
    std::string text;
    for (; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (c == close) {
        ++at_;
        return text;
      }
      const bool escapes = c == '\\' && at_ + 1 < line_.size();
      const size_t name = escapes ? names.find(line_[at_ + 1]) : std::string_view::npos;
      text += name == std::string_view::npos ? c : values[name];
      at_ += name != std::string_view::npos;
    }
    throw base::InputError(base::expectation(where_, fmt::format("a closing {}", close), "the end of the line"));
  }

  const std::string& line_;
  const std::string& where_;
  size_t at_ = 0;
};

}  // namespace

std::string shell_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  if (word.find_first_of("\n\r") == std::string::npos) return in_quotes(word);
  return "$'" + with_escapes(word, kBreakValues, kBreakNames) + "'";
}

std::vector<std::string> shell_words(const std::string& line, const std::string& where) {
  return WordReader(line, where).words();
}

}  // namespace collimate::cli
