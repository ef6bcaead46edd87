#include "collimate/text/oniguruma/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "collimate/base/error.h"
#include "collimate/text/utf8.h"

namespace collimate::text::oniguruma {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kOctalDigits = "01234567";

std::optional<uint32_t> simple_escape(char letter) {
  switch (letter) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case 'a':
      return '\a';
    case 'e':
      return 0x1B;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool Reader::take(std::string_view text) {
  if (!at(text)) return false;
  at_ += text.size();
  return true;
}

std::string_view Reader::take(size_t bytes) {
  const std::string_view taken = rest().substr(0, bytes);
  at_ += taken.size();
  return taken;
}

std::string_view Reader::take_while(std::string_view letters, size_t most) {
  const std::string_view front = rest().substr(0, most);
  return take(std::min(front.find_first_not_of(letters), front.size()));
}

std::string_view Reader::take_before(char end) {
  const size_t size = rest().find(end);
  if (size == std::string_view::npos) refuse(fmt::format("an end without '{}'", end), fmt::format("'{}' there", end));
  const std::string_view taken = take(size);
  ++at_;
  return taken;
}

uint32_t Reader::take_character() {
  if (done()) refuse("an end in the middle", "the whole pattern");
  const std::string_view taken = take(utf8_length(rest()));
  return utf8_code_point(taken);
}

std::optional<uint32_t> Reader::take_escaped(bool octal) {
  if (const auto letter = done() ? std::nullopt : simple_escape(rest()[0])) {
    ++at_;
    return letter;
  }
  if (take("x{")) return number(take_before('}'), 16);
  if (take("o{")) return number(take_before('}'), 8);
  if (at("M-")) refuse("bytes of more than 7 bits (\\M-)", "\\x{…}");
  if (take("C-") || take("c")) {
    const uint32_t letter = take_character();
    return letter == '?' ? 0x7F : letter & 0x9F;
  }
  if (take("u")) {
    const std::string_view digits = take_while(kHexDigits, 4);
    if (digits.size() < 4) refuse("\\u of fewer than four digits", "\\x{…}");
    return number(digits, 16);
  }
  const bool is_octal = octal && !done() && kOctalDigits.find(rest()[0]) != std::string_view::npos;
  if (!is_octal && !at("x")) return std::nullopt;
  const uint32_t code_point =
      take("x") ? number(take_while(kHexDigits, 2), 16) : number(take_while(kOctalDigits, 3), 8);
  if (code_point > 0x7F) refuse("bytes of more than 7 bits (\\x80, \\200)", "\\x{…}");
  return code_point;
}

uint32_t Reader::number(std::string_view digits, int base) const {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value, base);
  if (error != std::errc() || end != digits.end() || value > 0x10FFFF)
    refuse(fmt::format("'{}' as the number of a character", digits), "a number up to 10ffff");
  return value;
}

void Reader::refuse(const std::string& what, const std::string& remedy) const {
  size_t end = at_;  // moves on, so that whole characters are shown
  while (end < pattern_.size() && (static_cast<unsigned char>(pattern_[end]) & 0xC0) == 0x80) ++end;
  std::string got(pattern_);
  if (end > 0 && end < pattern_.size()) got += fmt::format(", at the end of '{}'", pattern_.substr(0, end));
  throw base::InputError(
      base::expectation(where_, "a pattern without " + what, got, remedy + ", or the model's tiktoken.model alone"));
}

std::string literal(uint32_t code_point) {
  if (code_point < 0x20 || code_point == 0x7F) return fmt::format("\\x{{{:x}}}", code_point);
  std::string out = code_point < 0x7F && !std::isalnum(static_cast<int>(code_point)) && code_point != ' ' ? "\\" : "";
  append_utf8(out, code_point);
  return out;
}

}  // namespace collimate::text::oniguruma
