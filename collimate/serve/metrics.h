#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "collimate/serve/engine_loop.h"

namespace collimate::serve {

// Counts of observations at or below each bound, in the way of Prometheus.
class Histogram {
 public:
  void observe(double seconds);
  // The lines of one metric.
  std::string text(const std::string& name, const std::string& help) const;

 private:
  static constexpr std::array<double, 12> kBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60};
  std::array<int64_t, kBounds.size()> counts_{};
  int64_t count_ = 0;
  double sum_ = 0;
};

// What the server counts of itself. Thread-safe.
class ServerMetrics {
 public:
  void count_answer(const std::string& endpoint, int status);
  void count_tokens(int64_t prompt, int64_t completion);
  void count_gone();  // a client that went away before its answer was complete
  void observe_first_token(double seconds);
  void observe_request(double seconds);

  // The page /metrics: Prometheus' text format, version 0.0.4.
  std::string text(const EngineStatus& engine, int64_t connections) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> answers_;
  int64_t prompt_tokens_ = 0, completion_tokens_ = 0, gone_ = 0;
  Histogram first_token_, request_;
};

}  // namespace collimate::serve
