#include "collimate/serve/metrics.h"

#include <fmt/format.h>

namespace collimate::serve {
namespace {

std::string heading(const std::string& name, const std::string& type, const std::string& help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

std::string single(const std::string& name, const std::string& type, const std::string& help, int64_t value) {
  return heading(name, type, help) + fmt::format("{} {}\n", name, value);
}

std::string engine_text(const EngineStatus& engine) {
  const generate::ServiceStats& s = engine.service;
  return single("collimate_engine_up", "gauge", "1 while the engine runs", engine.broken.empty() ? 1 : 0) +
         single("collimate_completions_in_flight", "gauge", "accepted and not finished", engine.in_flight) +
         single("collimate_completions_finished_total", "counter", "ended by themselves", engine.finished) +
         single("collimate_completions_cancelled_total", "counter", "ended before, by the client or a failure",
                engine.cancelled) +
         single("collimate_engine_failures_total", "counter", "steps that threw", engine.failures) +
         single("collimate_engine_steps_total", "counter", "steps", s.steps) +
         single("collimate_engine_prefill_tokens_total", "counter", "prompt tokens computed", s.prefill_tokens) +
         single("collimate_engine_shared_prompt_tokens_total", "counter", "prompt tokens found in the prefix cache",
                s.shared_prompt_tokens) +
         single("collimate_engine_decoded_tokens_total", "counter", "decoding positions computed", s.decoded_tokens) +
         single("collimate_engine_proposed_tokens_total", "counter", "tokens guessed by speculation",
                s.proposed_tokens) +
         single("collimate_engine_accepted_tokens_total", "counter", "those of them that were drawn",
                s.accepted_tokens) +
         single("collimate_engine_preemptions_total", "counter", "requests that had to be computed again",
                s.preemptions) +
         single("collimate_cache_blocks_used", "gauge", "blocks of the key and value cache", s.blocks_used) +
         single("collimate_cache_blocks_peak", "gauge", "most of them ever used", s.blocks_peak);
}

}  // namespace

void Histogram::observe(double seconds) {
  for (size_t i = 0; i < kBounds.size(); ++i) counts_[i] += seconds <= kBounds[i];
  ++count_;
  sum_ += seconds;
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string out = heading(name, "histogram", help);
  for (size_t i = 0; i < kBounds.size(); ++i) {
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBounds[i], counts_[i]);
  }
  return out + fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count_, sum_);
}

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

std::string ServerMetrics::text(const EngineStatus& engine, int64_t connections) const {
  const std::lock_guard lock(mutex_);
  std::string out = heading("collimate_http_responses_total", "counter", "answers by endpoint and status");
  for (const auto& [key, count] : answers_) {
    out += fmt::format("collimate_http_responses_total{{endpoint=\"{}\",status=\"{}\"}} {}\n", key.first, key.second,
                       count);
  }
  return out + single("collimate_http_connections", "gauge", "open connections", connections) +
         single("collimate_http_clients_gone_total", "counter", "clients that left before their answer was complete",
                gone_) +
         single("collimate_prompt_tokens_total", "counter", "prompt tokens of answered requests", prompt_tokens_) +
         single("collimate_completion_tokens_total", "counter", "tokens sent", completion_tokens_) +
         first_token_.text("collimate_time_to_first_token_seconds", "from a request to its first token") +
         request_.text("collimate_request_seconds", "from a request to the end of its answer") + engine_text(engine);
}

}  // namespace collimate::serve
