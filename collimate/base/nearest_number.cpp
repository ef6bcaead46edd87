#include "collimate/base/nearest_number.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace collimate::base {

std::string nearest_number(const std::string& text, double low, double high, const std::string& otherwise, bool whole) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || std::isnan(value)) return otherwise;
  return fmt::format("{}", std::clamp(whole ? std::round(value) : value, low, high));
}

}  // namespace collimate::base
