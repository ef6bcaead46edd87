#include "collimate/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace collimate::report {

namespace {

// Writes so many significant digits, or all before the point where there are more of them, but fewer than seven.
std::string significant(double value, int digits) {
  const double size = std::fabs(value);
  const bool whole = size >= std::pow(10, digits) - 0.5 && size < 1e6;
  return whole ? fmt::format("{:.0f}", value) : fmt::format("{:.{}g}", value, digits);
}

}  // namespace

std::string short_number(double value, bool percent, int digits) {
  if (percent) return significant(value * 100, digits) + " %";
  // A number that is rounded up to a bound has the unit from there on.
  const auto reaches = [value](double bound, int kept) {
    return std::fabs(value) >= bound - bound / (2 * std::pow(10, kept));
  };
  if (reaches(1e9, digits)) return significant(value * 1e-9, digits) + "G";
  if (reaches(1e6, digits)) return significant(value * 1e-6, digits) + "M";
  if (reaches(1e4, std::max(digits, 4))) return significant(value * 1e-3, digits) + "k";
  return significant(value, digits);
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
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1000);
  if (seconds < 100) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace collimate::report
