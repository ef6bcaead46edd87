#include <cctype>
#include <cstdlib>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {
namespace {

// Recursive descent over sum = product (± product)*, product = factor (*|/ factor)*, factor = number | (sum) | -factor.
class Parser {
 public:
  Parser(const std::string& text, std::vector<double>& numbers) : text_(text), numbers_(numbers) {}

  double parse() {
    const double value = sum();
    if (peek() != '\0') fail("the end of the formula");
    return value;
  }

 private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  [[noreturn]] void fail(const std::string& expected) {
    throw base::InputError(base::expectation("formula", expected, fmt::format("\"{}\" at {}", text_, at_)));
  }

  double sum() {
    double value = product();
    for (;;) {
      if (take('+'))
        value += product();
      else if (take('-'))
        value -= product();
      else
        return value;
    }
  }

  double product() {
    double value = factor();
    for (;;) {
      if (take('*')) {
        value *= factor();
      } else if (take('/')) {
        const double divisor = factor();
        if (divisor == 0) fail("a divisor other than 0");
        value /= divisor;
      } else {
        return value;
      }
    }
  }

  double factor() {
    if (++depth_ > 100) fail("at most 100 levels");
    double value = 0;
    if (take('(')) {
      value = sum();
      if (!take(')')) fail("\")\"");
    } else if (take('-')) {
      value = -factor();
    } else {
      value = number();
    }
    --depth_;
    return value;
  }

  double number() {
    if (std::isdigit(static_cast<unsigned char>(peek())) == 0) fail("a number");
    size_t end = at_;
    while (end < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '.'))
      ++end;
    const double value = std::strtod(text_.substr(at_, end - at_).c_str(), nullptr);
    at_ = end;
    numbers_.push_back(value);
    return value;
  }

  const std::string& text_;
  std::vector<double>& numbers_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

double evaluate_arithmetic(const std::string& text, std::vector<double>& numbers) {
  return Parser(text, numbers).parse();
}

}  // namespace collimate::rlhf
