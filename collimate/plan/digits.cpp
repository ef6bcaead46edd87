#include "collimate/plan/digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace collimate::plan {
namespace {

constexpr int kMostDecimals = 6;

}  // namespace

std::string three_digits(double value, int decimals) {
  const double size = std::abs(value);
  int places = decimals;
  if (size > 0 && std::isfinite(size))
    places = std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), decimals, kMostDecimals);
  return fmt::format("{:.{}f}", value, places);
}

}  // namespace collimate::plan
