#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace collimate::text::oniguruma {

// A place in a pattern, and the file that errors name.
class Reader {
 public:
  Reader(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  bool done() const { return at_ == pattern_.size(); }
  bool at(std::string_view text) const { return rest().starts_with(text); }
  std::string_view rest() const { return pattern_.substr(at_); }
  size_t place() const { return at_; }
  void go_back(size_t place) { at_ = place; }

  // Returns true, and goes on behind the text, where it stands here.
  bool take(std::string_view text);
  // These take so many bytes, or as many as come of `letters` but at most `most`, or those before the next `end`,
  // behind which the reader goes on.
  std::string_view take(size_t bytes);
  std::string_view take_while(std::string_view letters, size_t most);
  std::string_view take_before(char end);
  // Returns the code point here, and goes on behind it. Throws InputError at the pattern's end.
  uint32_t take_character();
  // Returns the code point that an escape stands for, whose backslash has been read: \t, \x41, \x{263a}, \u263A,
  // \o{101}, \cA, and \101 with `octal`. Returns nothing where the escape is none of these.
  std::optional<uint32_t> take_escaped(bool octal);

  // Throws InputError, which expected a pattern without `what`.
  [[noreturn]] void refuse(const std::string& what, const std::string& remedy) const;

 private:
  uint32_t number(std::string_view digits, int base) const;

  std::string_view pattern_;
  const std::string& where_;
  size_t at_ = 0;
};

// Returns a code point as a pattern of PCRE2 writes it, inside and outside of brackets.
std::string literal(uint32_t code_point);

}  // namespace collimate::text::oniguruma
