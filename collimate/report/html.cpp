#include "collimate/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace collimate::report {

std::string short_number(double value, bool percent, int digits) {
  if (percent) return fmt::format("{:.{}g} %", value * 100, digits);
  const double size = std::fabs(value);
  if (size >= 1e9) return fmt::format("{:.{}g}G", value * 1e-9, digits);
  if (size >= 1e6) return fmt::format("{:.{}g}M", value * 1e-6, digits);
  if (size >= 1e4) return fmt::format("{:.{}g}k", value * 1e-3, digits);
  return fmt::format("{:.{}g}", value, size >= 1000 ? std::max(digits, 4) : digits);
}

std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool percent) {
  constexpr int kMostDigits = 12;
  std::vector<std::string> labels;
  for (int digits = 3; digits <= kMostDigits; ++digits) {
    labels.clear();
    for (const double tick : ticks) labels.push_back(short_number(tick, percent, digits));
    if (std::adjacent_find(labels.begin(), labels.end()) == labels.end()) break;
  }
  return labels;
}

std::string duration(double seconds) {
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1000);
  if (seconds < 100) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace collimate::report
