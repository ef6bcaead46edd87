#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace collimate::serve {

// Upper bounds of buckets, in seconds: kRequestBounds for whole requests and the time to their first token,
// kTokenBounds for the time between two tokens.
inline constexpr std::array<double, 12> kRequestBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60};
inline constexpr std::array<double, 14> kTokenBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                                        0.025,  0.05,    0.1,    0.25,  0.5,    1,     2.5};

// A Histogram counts the observations at or below each bound, as Prometheus does. It can be copied and is not
// thread-safe.
class Histogram {
 public:
  // Takes at most kMostBounds ascending bounds, which must outlive this object.
  explicit Histogram(std::span<const double> bounds);

  void observe(double value, int64_t times = 1);
  // Returns the histogram as the lines of one metric in Prometheus' text format.
  std::string text(const std::string& name, const std::string& help) const;

 private:
  static constexpr size_t kMostBounds = 16;
  std::span<const double> bounds_;
  std::array<int64_t, kMostBounds> counts_{};
  int64_t count_ = 0;
  double sum_ = 0;
};

// Returns the two lines before a metric's values, HELP and TYPE.
std::string metric_heading(const std::string& name, const std::string& type, const std::string& help);

}  // namespace collimate::serve
