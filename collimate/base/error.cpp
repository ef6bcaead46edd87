#include "collimate/base/error.h"

namespace collimate::base {

std::string expectation(const std::string& where, const std::string& expected, const std::string& got,
                        const std::string& remedy) {
  std::string text = fmt::format("[{}] expected {}, got {}", where, expected, got);
  if (!remedy.empty()) text += "; try " + remedy;
  return text;
}

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  throw std::logic_error(
      fmt::format("{}:{}: broken invariant: {}{}{}", file, line, condition, detail.empty() ? "" : ": ", detail));
}

}  // namespace collimate::base
