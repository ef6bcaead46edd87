#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/base/deadline.h"

namespace collimate::base {

// A Span is one named stretch of time on one thread of one worker. Times are nanoseconds since the recorder was made.
struct Span {
  std::string name;
  int worker = 0;
  int thread = 0;
  int64_t iteration = 0;  // as metrics count it, from 1
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// A SpanRecorder collects spans. Thread-safe; a span costs a lock and a push (well under 1 us). Beyond `capacity` spans
// are only counted.
class SpanRecorder {
 public:
  explicit SpanRecorder(size_t capacity = 1 << 20) : capacity_(capacity) {}

  int64_t now_ns() const;
  void record(std::string_view name, int worker, int64_t iteration, int64_t begin_ns, int64_t end_ns);
  void name_worker(int worker, std::string name);
  size_t dropped() const;
  // Returns Chrome's trace format (chrome://tracing, ui.perfetto.dev): a process per worker, a row per thread, times in
  // us.
  std::string chrome_trace() const;

 private:
  const size_t capacity_;
  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
  std::vector<std::pair<int, std::string>> worker_names_;
  size_t dropped_ = 0;
};

}  // namespace collimate::base
