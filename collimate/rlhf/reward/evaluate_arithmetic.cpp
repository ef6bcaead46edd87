#include <cctype>
#include <cmath>
#include <cstdlib>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Returns Python's a // b of floats (float_floor_div of CPython), which is exact where a / b would round up to a whole
// number.
double floor_division(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  const double below = std::floor(quotient);
  return quotient - below > 0.5 ? below + 1 : below;
}

// Parses by recursive descent, with Python's grammar: sum = product (± product)*, product = factor (*|/|// factor)*,
// factor = ± factor | power, power = atom (** factor)?, atom = number | (sum).
class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  double parse() {
    const double value = sum();
    if (peek() != '\0') fail("the end of the formula");
    return value;
  }

 private:
  char peek() {
    while (at_ < text_.size() && std::string_view(" \t\f").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  // Takes the operator `word` if it comes next, as Python reads operators: ** and // are not two of one character.
  bool take(std::string_view word) {
    if (peek() != word[0] || text_.compare(at_, word.size(), word) != 0) return false;
    const bool doubled = word.size() == 1 && (word == "*" || word == "/") && text_.compare(at_ + 1, 1, word) == 0;
    if (!doubled) at_ += word.size();
    return !doubled;
  }

  [[noreturn]] void fail(const std::string& expected) {
    throw base::InputError(base::expectation("formula", expected, fmt::format("\"{}\" at {}", text_, at_)));
  }

  double finite(double value) {
    if (!std::isfinite(value)) fail("a value within the range of double");
    return value;
  }

  double divisor() {
    const double value = factor();
    if (value == 0) fail("a divisor other than 0");
    return value;
  }

  double sum() {
    double value = product();
    for (;;) {
      if (take("+"))
        value = finite(value + product());
      else if (take("-"))
        value = finite(value - product());
      else
        return value;
    }
  }

  double product() {
    double value = factor();
    for (;;) {
      if (take("*"))
        value = finite(value * factor());
      else if (take("//"))
        value = finite(floor_division(value, divisor()));
      else if (take("/"))
        value = finite(value / divisor());
      else
        return value;
    }
  }

  double factor() {
    if (++depth_ > 100) fail("at most 100 levels");
    double value = 0;
    if (take("-"))
      value = -factor();
    else if (take("+"))
      value = factor();
    else
      value = power();
    --depth_;
    return value;
  }

  double power() {
    const double base = atom();
    return take("**") ? finite(std::pow(base, factor())) : base;
  }

  double atom() {
    if (!take("(")) return number();
    const double value = sum();
    if (!take(")")) fail("\")\"");
    return value;
  }

  // Reads a whole number without leading zeros, or a number with a point, which may have them: 1.5, 2. and .5.
  double number() {
    peek();
    const size_t begin = at_;
    const auto digits = [this] {
      const size_t first = at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      return text_.substr(first, at_ - first);
    };
    const std::string whole = digits();
    const bool point = at_ < text_.size() && text_[at_] == '.';
    if (point) ++at_;
    if ((point ? digits() : "").empty() && whole.empty()) fail("a number");
    const double value = finite(std::strtod(text_.substr(begin, at_ - begin).c_str(), nullptr));
    if (!point && whole[0] == '0' && value != 0) fail("a whole number without zeros in front");
    return value;
  }

  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

double evaluate_arithmetic(const std::string& text) { return Parser(text).parse(); }

}  // namespace collimate::rlhf
