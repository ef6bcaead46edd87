#include "collimate/recipe/run_totals.h"

#include <cmath>
#include <string_view>

#include "collimate/recipe/best_metric.h"

namespace collimate::recipe {
namespace {

constexpr std::string_view kTiming = "timing_s/";

}  // namespace

void RunTotals::add(const base::MetricsRecord& record) {
  const double* tokens = record.find("perf/total_num_tokens");
  if (tokens == nullptr) tokens = record.find("train/tokens");
  if (tokens != nullptr) tokens_ += *tokens;
  for (const auto& [name, value] : record.values) {
    if (name.starts_with(kTiming)) phase_seconds_[name.substr(kTiming.size())] += value;
    const int direction = best_direction(name);
    if (direction == 0 || !std::isfinite(value)) continue;
    const auto [best, fresh] = best_.try_emplace(name, Best{value, record.step});
    if (!fresh && direction * value > direction * best->second.value) best->second = {value, record.step};
  }
}

nlohmann::ordered_json RunTotals::summary() const {
  const auto steps = phase_seconds_.find("step");
  const double seconds = steps == phase_seconds_.end() ? 0 : steps->second;
  return {{"tokens", tokens_},
          {"tokens_per_second", seconds > 0 ? tokens_ / seconds : 0.0},
          {"phase_seconds", phase_seconds_},
          {"best_metrics", best_}};
}

}  // namespace collimate::recipe
