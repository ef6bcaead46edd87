#include "collimate/text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/text/jinja/spaces.h"
#include "collimate/text/utf8.h"

namespace collimate::text::jinja {
namespace {

class Lexer {
 public:
  explicit Lexer(const std::string& source) {
    for (size_t at = 0; at < source.size(); ++at)
      if (source[at] != '\r' || !source.substr(at + 1, 1).starts_with('\n'))
        source_ += source[at] == '\r' ? '\n' : source[at];
    if (source_.ends_with('\n')) source_.pop_back();
  }

  std::vector<Token> all() {
    while (at_ < source_.size()) {
      const size_t tag = next_tag();
      add_text(tag);
      if (tag == source_.size()) break;
      at_ = tag;
      read_tag();
    }
    add(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  size_t next_tag() const {
    for (size_t i = at_; i + 1 < source_.size(); ++i)
      if (source_[i] == '{' && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#')) return i;
    return source_.size();
  }

  // Adds the text up to a tag, without what the tags on both sides take.
  void add_text(size_t tag) {
    std::string text = source_.substr(at_, tag - at_);
    const int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    const bool begins_line = at_ == 0 || source_[at_ - 1] == '\n' || trimmed_newline_;
    if (tag < source_.size()) strip_before(tag, begins_line, text);
    if (strip_next_) text.erase(0, skip(text, 0, is_space));
    strip_next_ = false;
    if (!text.empty()) add(TokenKind::kText, text);
    line_ += lines;
  }

  void strip_before(size_t tag, bool begins_line, std::string& text) const {
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    if (sign == '-') {
      text.erase(skip_back(text, text.size(), is_space));
      return;
    }
    if (source_[tag + 1] == '{' || sign == '+') return;
    const size_t line = text.rfind('\n');
    const size_t first = line == std::string::npos ? 0 : line + 1;
    if (line == std::string::npos && !begins_line) return;
    if (skip(text, first, is_space) == text.size()) text.erase(first);
  }

  void read_tag() {
    const char kind = source_[at_ + 1];
    at_ += 2;
    if (kind == '#') return skip_comment();
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) ++at_;
    const bool block = kind == '%';
    if (block && is_raw()) return;
    add(block ? TokenKind::kBeginBlock : TokenKind::kBeginPrint, "");
    brackets_ = 0;
    while (!ends_tag(block)) read_token();
    add(block ? TokenKind::kEndBlock : TokenKind::kEndPrint, "");
  }

  // Notes what a tag's end takes from the text behind it: all white space with "-", and one newline for a block or
  // comment.
  void after_tag(bool block, char sign) {
    strip_next_ = sign == '-';
    trimmed_newline_ = false;
    if (block && sign != '+' && at_ < source_.size() && source_[at_] == '\n') {
      ++at_;
      ++line_;
      trimmed_newline_ = true;
    }
  }

  void skip_comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos) refuse_here("the end of a comment", "the end of the template");
    const char sign = source_[end - 1];
    line_ += static_cast<int>(
        std::count(source_.begin() + static_cast<int64_t>(at_), source_.begin() + static_cast<int64_t>(end), '\n'));
    at_ = end + 2;
    after_tag(true, sign);
  }

  // Returns the end of a tag that is this word and no more, read from behind its first sign, and sets `sign` to the one
  // at its end; npos for another tag.
  size_t end_of_word(size_t at, std::string_view word, char& sign) const {
    at = skip(source_, at, is_space);
    if (source_.compare(at, word.size(), word) != 0) return std::string::npos;
    at = skip(source_, at + word.size(), is_space);
    sign = at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at++] : ' ';
    return source_.compare(at, 2, "%}") == 0 ? at + 2 : std::string::npos;
  }

  // Reads {% raw %} … {% endraw %} where it stands here. The tags on both sides take from the text between them as
  // from any other.
  bool is_raw() {
    char sign = ' ';
    const size_t begin = end_of_word(at_, "raw", sign);
    if (begin == std::string::npos || sign == '+') return false;
    at_ = begin;
    after_tag(false, sign);
    for (size_t open = source_.find("{%", at_); open != std::string::npos; open = source_.find("{%", open + 1)) {
      const bool signed_begin = source_.substr(open + 2, 1).find_first_of("-+") == 0;
      const size_t end = end_of_word(open + (signed_begin ? 3 : 2), "endraw", sign);
      if (end == std::string::npos) continue;
      add_text(open);
      at_ = end;
      after_tag(true, sign);
      return true;
    }
    refuse_here("endraw", "none");
  }

  bool ends_tag(bool block) {
    skip_spaces();
    if (at_ >= source_.size()) refuse_here(block ? "%}" : "}}", "the end of the template");
    char sign = ' ';
    size_t at = at_;
    if ((source_[at] == '-' || source_[at] == '+') && at + 2 < source_.size()) sign = source_[at++];
    const bool ends = brackets_ == 0 && source_.compare(at, 2, block ? "%}" : "}}") == 0;
    if (!ends) return false;
    at_ = at + 2;
    after_tag(block, sign);
    return true;
  }

  void skip_spaces() {
    const size_t begin = std::exchange(at_, skip(source_, at_, is_space));
    line_ += static_cast<int>(
        std::count(source_.begin() + static_cast<int64_t>(begin), source_.begin() + static_cast<int64_t>(at_), '\n'));
  }

  void read_token() {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return read_string(c);
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return read_number();
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      const size_t begin = at_;
      while (at_ < source_.size() &&
             (std::isalnum(static_cast<unsigned char>(source_[at_])) != 0 || source_[at_] == '_'))
        ++at_;
      return add(TokenKind::kName, source_.substr(begin, at_ - begin));
    }
    for (const char* sign : {"==", "!=", "<=", ">=", "//", "**"}) {
      if (source_.compare(at_, 2, sign) != 0) continue;
      at_ += 2;
      return add(TokenKind::kSign, sign);
    }
    if (std::string("()[]{}.,:|~+-*/%<>=").find(c) == std::string::npos)
      refuse_here("an expression", fmt::format("'{}'", c));
    if (std::string("([{").find(c) != std::string::npos) ++brackets_;
    if (std::string(")]}").find(c) != std::string::npos) --brackets_;
    ++at_;
    add(TokenKind::kSign, std::string(1, c));
  }

  void read_number() {
    const size_t begin = at_;
    const auto digits = [&] {
      while (at_ < source_.size() &&
             (std::isdigit(static_cast<unsigned char>(source_[at_])) != 0 || source_[at_] == '_'))
        ++at_;
    };
    digits();
    const auto is_digit = [&](size_t at) {
      return at < source_.size() && std::isdigit(static_cast<unsigned char>(source_[at])) != 0;
    };
    bool real = at_ < source_.size() && source_[at_] == '.' && is_digit(at_ + 1);
    if (real) {
      ++at_;
      digits();
    }
    if (at_ < source_.size() && (source_[at_] == 'e' || source_[at_] == 'E')) {
      const size_t sign = at_ + 1 < source_.size() && (source_[at_ + 1] == '-' || source_[at_ + 1] == '+') ? 1 : 0;
      if (is_digit(at_ + 1 + sign)) {
        real = true;
        at_ += 1 + sign;
        digits();
      }
    }
    std::string text = source_.substr(begin, at_ - begin);
    std::erase(text, '_');
    if (text.size() > 18) refuse_here("numbers of at most 18 digits", text.substr(0, 40));
    add(real ? TokenKind::kReal : TokenKind::kInteger, text);
  }

  void read_string(char quote) {
    std::string text;
    const int line = line_;
    for (++at_; at_ < source_.size() && source_[at_] != quote; ++at_) {
      if (source_[at_] == '\n') ++line_;
      if (source_[at_] != '\\' || at_ + 1 >= source_.size()) {
        text += source_[at_];
      } else {
        ++at_;
        read_escape(text);
      }
    }
    if (at_ >= source_.size()) refuse_here("the end of a string", "the end of the template");
    ++at_;
    tokens_.push_back({TokenKind::kString, text, line});
  }

  void read_escape(std::string& text) {
    const char c = source_[at_];
    static const std::string kNames = "ntrabfv0\\'\"", kMeant("\n\t\r\a\b\f\v\0\\'\"", 11);
    if (const size_t known = kNames.find(c); known != std::string::npos) {
      text += kMeant[known];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const std::string hex = source_.substr(at_ + 1, digits);
      if (hex.size() < digits || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
        refuse_here("hexadecimal digits of a character", hex);
      const auto code = static_cast<uint32_t>(std::stoul(hex, nullptr, 16));
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) refuse_here("the number of a character", hex);
      append_utf8(text, code);
      at_ += digits;
    } else if (c != '\n') {
      text += '\\';
      text += c;
    }
  }

  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  [[noreturn]] void refuse_here(const std::string& expected, const std::string& got) const {
    throw base::InputError(base::expectation(fmt::format("chat template line {}", line_), expected, got));
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  int brackets_ = 0;
  bool strip_next_ = false, trimmed_newline_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(const std::string& source) { return Lexer(source).all(); }

}  // namespace collimate::text::jinja
