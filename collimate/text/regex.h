#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "collimate/text/utf8.h"

namespace collimate::text {

struct Span {
  size_t begin = 0;
  size_t end = 0;
  size_t size() const { return end - begin; }
};

// A PCRE2 pattern in UTF mode with Unicode classes. `\s` means what Oniguruma means by it (PCRE2's own holds U+180E as
// well). Immutable after construction; may be used by several threads.
class Regex {
 public:
  // Returns why PCRE2 does not compile a pattern, "" where it does.
  static std::string problem(const std::string& pattern);
  // Throws InputError, which names `where`, with the pattern and PCRE2's message when it does not compile.
  explicit Regex(const std::string& pattern, const std::string& where = "regex");
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Finds the first match that begins at or after `from`. `text` must be well-formed UTF-8. Throws RunError when PCRE2
  // gives up: after ten million steps, or when its stack of 16 MiB (64 MiB without its compiler) is full.
  bool find(std::string_view text, size_t from, Span& match) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns how many bytes at the start of `text` open a bracket's set and do not end it: "[" or "[^", and a "]" right
// behind.
size_t class_opening(std::string_view text);
// Returns the length of the named set ("[:alpha:]") at the start of `text`, 0 where there is none.
size_t named_class(std::string_view text);

// Calls `use(match)` for each match that `find(from, match)` gives, and goes on from one to the next as Hugging Face's
// `tokenizers` does: an empty text has no match, and no empty match stands where the last one ended. `text` is
// well-formed UTF-8.
template <class Find, class Use>
void for_each_match(std::string_view text, Find find, Use use) {
  size_t last_end = std::string_view::npos;
  Span match;
  for (size_t from = 0; !text.empty() && from <= text.size() && find(from, match);) {
    from = match.end;
    if (match.size() == 0 && match.end == last_end) {
      from += std::max<size_t>(1, utf8_length(text.substr(from)));
    } else {
      use(match);
      last_end = match.end;
    }
  }
}

// Returns the text with a backslash before every character that means something in a pattern.
std::string regex_escape(std::string_view literal);

}  // namespace collimate::text
