#include "collimate/recipe/best_metric.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "collimate/base/error.h"

namespace collimate::recipe {
namespace {

constexpr std::string_view kHeldOut = "val/";
constexpr const char* kOption = "run.best_metric";

bool is_held_out(const std::string& metric) { return metric.starts_with(kHeldOut); }

// Returns whether a line should have the metric. The line of an evaluation has the metrics of held-out rows, and that
// of an iteration the others. Where all samples of an evaluation were dropped, its line has their errors alone.
bool is_measured_by(const base::MetricsRecord& record, const std::string& metric) {
  if (!is_held_out(metric)) return record.step > 0;
  return std::ranges::any_of(
      record.values, [](const auto& value) { return is_held_out(value.first) && !value.first.ends_with("/errors"); });
}

std::vector<std::string> names_with_a_best(const base::MetricsRecord& record) {
  std::vector<std::string> names;
  for (const auto& [name, value] : record.values)
    if (best_direction(name) != 0) names.push_back(name);
  return names;
}

}  // namespace

int best_direction(const std::string& metric) {
  static const std::map<std::string, int> directions = {
      {"val/accuracy", 1},        {"val/reward/mean", 1}, {"val/margin", 1},         {"val/rewards/accuracies", 1},
      {"val/rewards/margins", 1}, {"val/acc", 1},         {"val/acc_norm", 1},       {"val/loss", -1},
      {"val/perplexity", -1},     {"val/divergence", -1}, {"critic/rewards/mean", 1}};
  if (const auto found = directions.find(metric); found != directions.end()) return found->second;
  if (!is_held_out(metric)) return 0;
  if (metric.find('@') != std::string::npos) return 1;       // pass@k, mean@n, best@n and maj@n
  const size_t measure = metric.find('/', kHeldOut.size());  // of a named evaluation: "val/choices/acc"
  return measure == std::string::npos ? 0 : best_direction(std::string(kHeldOut) + metric.substr(measure + 1));
}

std::string best_metric_problem(const Config& config, bool measures) {
  const std::string& name = config.run.best_metric;
  const int64_t save = config.run.save_every, evaluate = config.run.evaluate_every;
  if (name.empty()) return "";
  if (best_direction(name) == 0)
    return base::expectation(kOption, "a metric of which the best value means something", name,
                             "val/accuracy, val/reward/mean, val/loss, val/rewards/accuracies or critic/rewards/mean");
  if (save == 0)
    return base::expectation(kOption, "several checkpoints to take the best of", "run.save_every: 0",
                             "run.save_every: 50");
  if (is_held_out(name) && !measures)
    return base::expectation(kOption, "held-out rows, which that metric is of", "none", "data.eval or data.val_size");
  if (is_held_out(name) && (evaluate == 0 || save % evaluate != 0))
    return base::expectation(kOption,
                             "run.save_every to be a multiple of run.evaluate_every, so that each checkpoint is "
                             "measured",
                             fmt::format("run.save_every: {} and run.evaluate_every: {}", save, evaluate),
                             fmt::format("run.evaluate_every: {}", save));
  return "";
}

BestMetric::BestMetric(const Config& config, const std::filesystem::path& recorded) : name_(config.run.best_metric) {
  if (!asked() || !std::filesystem::exists(recorded)) return;
  std::vector<std::string> unreadable;  // of which the run's end tells
  base::for_each_metrics(recorded, &unreadable, [this](const base::MetricsRecord& record) {
    const double* value = record.find(name_);
    note(record, value != nullptr ? value : record.find(base::trl_name(name_)));
  });
}

void BestMetric::note(const base::MetricsRecord& record, const double* value) {
  if (value != nullptr && std::isfinite(*value)) values_[record.step] = best_direction(name_) * *value;
}

void BestMetric::add(const base::MetricsRecord& record) {
  if (!asked() || !is_measured_by(record, name_)) return;
  const double* value = record.find(name_);
  if (value == nullptr && !values_.empty()) return;  // this time all of its rows were dropped
  if (value == nullptr)
    throw base::InputError(base::expectation(
        kOption, fmt::format("a metric of this run: {}", fmt::join(names_with_a_best(record), ", ")), name_));
  note(record, value);
}

std::optional<double> BestMetric::value(int64_t step) const {
  const auto found = values_.find(step);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace collimate::recipe
