#include "tests/golden/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace collimate::golden {

Tolerance tolerance_at(size_t step) { return step == 0 ? Tolerance{} : Tolerance{1e-4, 1e-3, 1e-3}; }

void Comparison::add(const std::string& what, double ours, double theirs, double difference, double tolerance) {
  ++count_;
  if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
  const double ratio = difference / tolerance;
  if (ratio <= worst_ratio_) return;
  worst_ratio_ = ratio;
  worst_difference_ = difference;
  worst_ = fmt::format("{}: {:.9g} for {:.9g}", what, ours, theirs);
}

void Comparison::scaled(const std::string& what, double ours, double theirs, double scale, double tolerance) {
  const bool same = ours == theirs || (std::isnan(ours) && std::isnan(theirs));
  add(what, ours, theirs, same ? 0.0 : std::abs(ours - theirs) / scale, tolerance);
}

void Comparison::loss(const std::string& what, double ours, double theirs, double tolerance) {
  scaled(what, ours, theirs, std::max(1.0, std::abs(theirs)), tolerance);
}

void Comparison::relative(const std::string& what, double ours, double theirs, double tolerance) {
  scaled(what, ours, theirs, std::max(1e-12, std::abs(theirs)), tolerance);
}

void Comparison::losses(const std::string& what, const std::vector<float>& ours, const std::vector<float>& theirs,
                        double tolerance) {
  if (ours.size() != theirs.size()) return fail(fmt::format("{}: {} numbers for {}", what, ours.size(), theirs.size()));
  for (size_t i = 0; i < ours.size(); ++i) loss(fmt::format("{}[{}]", what, i), ours[i], theirs[i], tolerance);
}

void Comparison::fail(const std::string& what) {
  ++count_;
  worst_ratio_ = worst_difference_ = std::numeric_limits<double>::infinity();
  worst_ = what;
}

std::string Comparison::text() const {
  if (count_ == 0) return "nothing to compare";
  return fmt::format("worst relative difference {:.1e} ({:.0f}% of its tolerance; {}; {} compared)", worst_difference_,
                     100 * worst_ratio_, worst_, count_);
}

Outcome outcome_of(const std::string& name, const Comparison& comparison) {
  return {name, comparison.within() ? Verdict::kWithin : Verdict::kOutside, comparison.text()};
}

}  // namespace collimate::golden
