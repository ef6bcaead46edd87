#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "collimate/serve/engine_loop.h"
#include "collimate/serve/histogram.h"

namespace collimate::serve {

// A Gauge is a property of the model that the page shows beside the server's own counts.
struct Gauge {
  std::string name;
  std::string help;
  double value = 0;
};

// ServerMetrics are what the server counts and measures about itself. Thread-safe.
class ServerMetrics {
 public:
  void count_answer(const std::string& endpoint, int status);
  void count_tokens(int64_t prompt, int64_t completion);
  void count_gone();  // counts a client that went away before its answer was complete
  void observe_first_token(double seconds);
  void observe_request(double seconds);

  // Returns the page /metrics in Prometheus' text format, version 0.0.4.
  std::string text(const EngineStatus& engine, int64_t connections, std::span<const Gauge> gauges = {}) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> answers_;
  int64_t prompt_tokens_ = 0, completion_tokens_ = 0, gone_ = 0;
  Histogram first_token_{kRequestBounds}, request_{kRequestBounds};
};

}  // namespace collimate::serve
