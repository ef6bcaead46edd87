#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace collimate::text::oniguruma {

// A place in a pattern, with the file that errors name.
class Reader {
 public:
  Reader(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  bool done() const { return at_ == pattern_.size(); }
  bool at(std::string_view text) const { return rest().starts_with(text); }
  std::string_view rest() const { return pattern_.substr(at_); }
  size_t place() const { return at_; }
  void go_back(size_t place) { at_ = place; }

  // True, and behind it, where the text stands here.
  bool take(std::string_view text);
  // So many bytes, or as many as come of `letters`, or those before the next `end`, behind which it goes on.
  std::string_view take(size_t bytes);
  std::string_view take_while(std::string_view letters, size_t most);
  std::string_view take_before(char end);
  // The code point here, behind which it goes on. InputError at the pattern's end.
  uint32_t take_character();
  // The code point that an escape stands for, of which the backslash is read: \t, \x41, \x{263a}, \u263A, \o{101}, \cA,
  // and \101 with `octal`. Nothing where the escape is none of these.
  std::optional<uint32_t> take_escaped(bool octal);

  // Throws InputError: a pattern without `what`.
  [[noreturn]] void refuse(const std::string& what, const std::string& remedy) const;

 private:
  uint32_t number(std::string_view digits, int base) const;

  std::string_view pattern_;
  const std::string& where_;
  size_t at_ = 0;
};

// A code point as a pattern of PCRE2 has it, inside and outside of brackets.
std::string literal(uint32_t code_point);

}  // namespace collimate::text::oniguruma
