#include "collimate/serve/histogram.h"

#include <fmt/format.h>

#include "collimate/base/error.h"

namespace collimate::serve {

Histogram::Histogram(std::span<const double> bounds) : bounds_(bounds) {
  COLLIMATE_CHECK(bounds.size() <= kMostBounds, "{} bounds", bounds.size());
}

void Histogram::observe(double value, int64_t times) {
  for (size_t i = 0; i < bounds_.size(); ++i) counts_[i] += value <= bounds_[i] ? times : 0;
  count_ += times;
  sum_ += value * static_cast<double>(times);
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string out = metric_heading(name, "histogram", help);
  for (size_t i = 0; i < bounds_.size(); ++i) {
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], counts_[i]);
  }
  return out + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count_, sum_);
}

std::string metric_heading(const std::string& name, const std::string& type, const std::string& help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace collimate::serve
