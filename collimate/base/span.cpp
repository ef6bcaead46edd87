#include "collimate/base/span.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace collimate::base {
namespace {

// Returns a small number for this thread; threads are numbered in the order of their first span.
int thread_number() {
  static std::atomic<int> next{0};
  thread_local const int number = next++;
  return number;
}

}  // namespace

int64_t SpanRecorder::now_ns() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
}

void SpanRecorder::record(std::string_view name, int worker, int64_t iteration, int64_t begin_ns, int64_t end_ns) {
  Span span{std::string(name), worker, thread_number(), iteration, begin_ns, end_ns};
  const std::lock_guard lock(mutex_);
  if (spans_.size() >= capacity_) {
    ++dropped_;
  } else {
    spans_.push_back(std::move(span));
  }
}

void SpanRecorder::name_worker(int worker, std::string name) {
  const std::lock_guard lock(mutex_);
  worker_names_.emplace_back(worker, std::move(name));
}

size_t SpanRecorder::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::string SpanRecorder::chrome_trace() const {
  using nlohmann::ordered_json;
  const std::lock_guard lock(mutex_);
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* separator = "\n";
  for (const auto& [worker, name] : worker_names_) {
    out += separator +
           ordered_json{{"name", "process_name"}, {"ph", "M"}, {"pid", worker}, {"args", {{"name", name}}}}.dump();
    separator = ",\n";
  }
  for (const auto& span : spans_) {
    out += fmt::format(
        "{}{{\"name\":{},\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{\"iteration\":{}}}}"
        "}",
        separator, ordered_json(span.name).dump(), span.worker, span.thread, static_cast<double>(span.begin_ns) / 1e3,
        static_cast<double>(span.end_ns - span.begin_ns) / 1e3, span.iteration);
    separator = ",\n";
  }
  return out + fmt::format("\n],\"otherData\":{{\"dropped_spans\":{}}}}}\n", dropped_);
}

}  // namespace collimate::base
