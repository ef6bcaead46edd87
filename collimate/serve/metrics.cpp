#include "collimate/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace collimate::serve {
namespace {

template <class Number>
std::string single(const std::string& name, const std::string& type, const std::string& help, Number value) {
  return metric_heading(name, type, help) + fmt::format("{} {}\n", name, value);
}

// Returns the metrics that say how full the batch and the cache are.
std::string use_text(const EngineStatus& engine) {
  const generate::ServiceStats& s = engine.service;
  const double used = s.blocks == 0 ? 0.0 : static_cast<double>(s.blocks_used) / static_cast<double>(s.blocks);
  return single("collimate_completions_running", "gauge", "completions in the batch", s.running) +
         single("collimate_completions_waiting", "gauge", "completions that are accepted and not yet in the batch",
                std::max<int64_t>(0, engine.in_flight - s.running)) +
         single("collimate_engine_slots", "gauge", "completions that a step can run", s.slots) +
         single("collimate_engine_utilisation_ratio", "gauge",
                "how full the batch was in steps that left completions waiting: queued rows / (queued steps x slots)",
                s.utilisation()) +
         single("collimate_cache_blocks", "gauge", "blocks of the key and value cache", s.blocks) +
         single("collimate_cache_bytes", "gauge", "size of the key and value cache", s.cache_bytes) +
         single("collimate_cache_blocks_used", "gauge", "blocks in use", s.blocks_used) +
         single("collimate_cache_used_ratio", "gauge", "share of the blocks that is in use", used) +
         single("collimate_cache_blocks_peak", "gauge", "most blocks that were ever used at a time", s.blocks_peak);
}

std::string counts_text(const generate::ServiceCounts& counts) {
  std::string text;
  generate::ServiceCounts::fields(counts, [&](const char* name, int64_t value, const char* help) {
    text += single(fmt::format("collimate_engine_{}_total", name), "counter", help, value);
  });
  return text;
}

std::string engine_text(const EngineStatus& engine) {
  return single("collimate_engine_up", "gauge", "1 while the engine runs", engine.broken.empty() ? 1 : 0) +
         single("collimate_completions_in_flight", "gauge", "completions that are accepted and not finished",
                engine.in_flight) +
         single("collimate_completions_finished_total", "counter", "completions that ended by themselves",
                engine.finished) +
         single("collimate_completions_cancelled_total", "counter", "completions that the client or a failure ended",
                engine.cancelled) +
         single("collimate_completions_expired_total", "counter", "completions that their timeout ended",
                engine.expired) +
         single("collimate_engine_failures_total", "counter", "steps of the engine that failed", engine.failures) +
         counts_text(engine.service) +
         engine.between_tokens.text("collimate_time_between_tokens_seconds",
                                    "seconds from one token of a completion to the next") +
         use_text(engine);
}

}  // namespace

void ServerMetrics::count_answer(const std::string& endpoint, int status) {
  const std::lock_guard lock(mutex_);
  ++answers_[{endpoint, status}];
}

void ServerMetrics::count_tokens(int64_t prompt, int64_t completion) {
  const std::lock_guard lock(mutex_);
  prompt_tokens_ += prompt;
  completion_tokens_ += completion;
}

void ServerMetrics::count_gone() {
  const std::lock_guard lock(mutex_);
  ++gone_;
}

void ServerMetrics::observe_first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_token_.observe(seconds);
}

void ServerMetrics::observe_request(double seconds) {
  const std::lock_guard lock(mutex_);
  request_.observe(seconds);
}

std::string ServerMetrics::text(const EngineStatus& engine, int64_t connections, std::span<const Gauge> gauges) const {
  std::string properties;
  for (const Gauge& gauge : gauges) properties.append(single(gauge.name, "gauge", gauge.help, gauge.value));
  const std::lock_guard lock(mutex_);
  std::string out = metric_heading("collimate_http_responses_total", "counter", "answers by endpoint and status");
  for (const auto& [key, count] : answers_) {
    out += fmt::format("collimate_http_responses_total{{endpoint=\"{}\",status=\"{}\"}} {}\n", key.first, key.second,
                       count);
  }
  return out + single("collimate_http_connections", "gauge", "open connections", connections) +
         single("collimate_http_clients_gone_total", "counter", "clients that left before their answer was complete",
                gone_) +
         single("collimate_prompt_tokens_total", "counter", "prompt tokens of answered requests", prompt_tokens_) +
         single("collimate_completion_tokens_total", "counter", "completion tokens that were sent",
                completion_tokens_) +
         first_token_.text("collimate_time_to_first_token_seconds", "seconds from a request to its first token") +
         request_.text("collimate_request_seconds", "seconds from a request to the end of its answer") +
         engine_text(engine) + properties;
}

}  // namespace collimate::serve
