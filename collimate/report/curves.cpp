#include <algorithm>
#include <cmath>

#include "collimate/report/html.h"
#include "collimate/report/sections.h"

namespace collimate::report {

namespace {

// `metric` ending in '/' stands for the whole family, labelled by what follows.
struct Wanted {
  const char* metric = nullptr;
  const char* label = "";
};

struct ChartKind {
  const char* title;
  const char* unit;
  Scale scale;
  Wanted lines[4];    // the rest null
  double factor = 1;  // from the metric's unit to the axis'
};

constexpr size_t kMostLines = 6;
constexpr double kMebibytes = 1.0 / (1 << 20);

constexpr ChartKind kChartKinds[] = {
    {"Held-out accuracy", "accuracy", Scale::kPercent, {{"val/accuracy", "accuracy"}, {"val/test_score/", ""}}},
    {"Held-out loss", "nats per token", Scale::kLinear, {{"val/loss", "loss"}}},
    {"Reward", "mean reward", Scale::kLinear, {{"critic/rewards/mean", "reward"}, {"critic/score/mean", "score"}}},
    {"Held-out reward", "mean reward", Scale::kLinear, {{"val/reward/mean", "reward"}}},
    {"Failed rewards",
     "samples without a reward",
     Scale::kLinear,
     {{"reward/errors", "training"}, {"val/reward/errors", "held-out"}}},
    {"Preference accuracy",
     "pairs in order",
     Scale::kPercent,
     {{"rewards/accuracies", "training pairs"}, {"reward/accuracy", "training pairs"}}},
    {"Preference margin",
     "difference of rewards",
     Scale::kLinear,
     {{"rewards/margins", "training pairs"}, {"reward/margin", "training pairs"}, {"val/margin", "held-out pairs"}}},
    {"Loss",
     "loss",
     Scale::kLinear,
     {{"train/loss", "loss"},
      {"actor/loss", "policy, whole"},
      {"actor/pg_loss", "policy"},
      {"critic/vf_loss", "value"}}},
    {"KL divergence",
     "nats per token",
     Scale::kLinear,
     {{"actor/ppo_kl", "to the policy that sampled"},
      {"actor/kl_loss", "to the reference"},
      {"actor/reward_kl_penalty", "penalty in the reward"}}},
    {"Completion length",
     "tokens",
     Scale::kLinear,
     {{"response_length/mean", "mean"}, {"response_length/min", "shortest"}, {"response_length/max", "longest"}}},
    {"Entropy", "nats per token", Scale::kLinear, {{"actor/entropy", "policy"}}},
    {"Gradient norm",
     "before clipping",
     Scale::kLinear,
     {{"actor/grad_norm", "policy"}, {"critic/grad_norm", "value"}}},
    {"Learning rate", "learning rate", Scale::kLinear, {{"actor/lr", "policy"}, {"critic/lr", "value"}}},
    {"Log-probs: decode against training",
     "difference, nats",
     Scale::kLog,
     {{"mismatch/logprob_abs_max", "largest"}, {"mismatch/logprob_abs_mean", "mean"}}},
    {"Clipped tokens",
     "share of tokens",
     Scale::kPercent,
     {{"actor/pg_clipfrac", "policy"}, {"critic/vf_clipfrac", "value"}}},
    {"Throughput", "tokens per second", Scale::kLinear, {{"perf/throughput", "whole step"}}},
    {"Peak memory", "MiB", Scale::kLinear, {{"memory/peak_bytes", "process"}, {"memory/peak_bytes/", ""}}, kMebibytes},
};

Series scaled(Series series, double factor) {
  for (double& value : series.y) value *= factor;
  return series;
}

double highest(const Series& series) {
  return series.empty() ? 0 : *std::max_element(series.y.begin(), series.y.end());
}
double highest(const Chart& chart) {
  double high = 0;
  for (const ChartLine& line : chart.lines) high = std::max(high, highest(line.series));
  return high;
}

void add_line(const RunData& run, const Wanted& wanted, double factor, Chart& chart) {
  const std::string_view name = wanted.metric;
  if (!name.ends_with('/')) {
    const Series& series = run.series(name);
    if (!series.empty()) chart.lines.push_back({wanted.label, scaled(series, factor)});
    return;
  }
  const double high = highest(chart);
  for (auto entry = run.metrics.lower_bound(name); entry != run.metrics.end(); ++entry) {
    if (!entry->first.starts_with(name) || chart.lines.size() >= kMostLines) return;
    if (highest(entry->second) * factor < high / 100) continue;  // would lie on the axis
    chart.lines.push_back({entry->first.substr(name.size()), scaled(entry->second, factor)});
  }
}

// Zero but for rounding, as the loss of an on-policy update is: a picture would show the rounding.
bool is_zero(const Series& series) {
  return std::all_of(series.y.begin(), series.y.end(), [](double y) { return std::fabs(y) < 1e-7; });
}

}  // namespace

Curves curves_of(const RunData& run) {
  Curves curves;
  for (const ChartKind& kind : kChartKinds) {
    Chart chart{kind.title, kind.unit, kind.scale, {}};
    for (const Wanted& wanted : kind.lines) {
      if (wanted.metric) add_line(run, wanted, kind.factor, chart);
    }
    for (const ChartLine& line : chart.lines) {
      if (is_zero(line.series)) curves.zeros.push_back(chart.title + " (" + line.label + ")");
    }
    std::erase_if(chart.lines, [](const ChartLine& line) { return is_zero(line.series); });
    if (!chart.lines.empty()) curves.charts.push_back(std::move(chart));
  }
  return curves;
}

}  // namespace collimate::report
