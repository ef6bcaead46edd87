#include "tests/fault/cli_support.h"

#include <regex>

namespace collimate::test {

std::string with_word(const std::string& text, const std::string& pattern, const std::string& word) {
  return std::regex_replace(text, std::regex(pattern), word);
}

}  // namespace collimate::test
