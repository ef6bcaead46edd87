#include "collimate/recipe/run_totals.h"

#include <cmath>
#include <string_view>

namespace collimate::recipe {
namespace {

constexpr std::string_view kTiming = "timing_s/", kHeldOut = "val/";

// Metrics of which the best value means something: +1 for the highest, -1 for the lowest, 0 for none.
int better(const std::string& name) {
  static const std::map<std::string, int> directions = {
      {"val/accuracy", 1},           {"val/reward/mean", 1},     {"val/margin", 1},
      {"val/rewards/accuracies", 1}, {"val/rewards/margins", 1}, {"val/acc", 1},
      {"val/acc_norm", 1},           {"val/loss", -1},           {"critic/rewards/mean", 1}};
  if (const auto found = directions.find(name); found != directions.end()) return found->second;
  if (!name.starts_with(kHeldOut)) return 0;
  const size_t measure = name.find('/', kHeldOut.size());  // of a further one: "val/choices/acc"
  return measure == std::string::npos ? 0 : better(std::string(kHeldOut) + name.substr(measure + 1));
}

}  // namespace

void RunTotals::add(const base::MetricsRecord& record) {
  const double* tokens = record.find("perf/total_num_tokens");
  if (tokens == nullptr) tokens = record.find("train/tokens");
  if (tokens != nullptr) tokens_ += *tokens;
  for (const auto& [name, value] : record.values) {
    if (name.starts_with(kTiming)) phase_seconds_[name.substr(kTiming.size())] += value;
    const int direction = better(name);
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
