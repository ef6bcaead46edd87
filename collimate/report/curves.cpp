#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "collimate/report/html.h"
#include "collimate/report/sections.h"
#include "collimate/report/words.h"

namespace collimate::report {

namespace {

// A Wanted is a metric to draw. One that ends in '/' stands for its whole family, each labelled by what follows.
struct Wanted {
  const char* metric = nullptr;
  const char* label = "";
};

struct ChartKind {
  const char* title;
  const char* unit;
  Wanted lines[4];  // those not needed have no metric
  Scale scale = Scale::kLinear;
  double factor = 1;  // from the metric's unit to the axis'
};

constexpr size_t kMostLines = 6;
constexpr std::string_view kHeldOut = "val/";
constexpr double kMebibytes = 1.0 / (1 << 20);
constexpr const char* kMebibyteAxis = "MiB";

constexpr ChartKind kChartKinds[] = {
    {"Held-out accuracy", "accuracy", {{"val/accuracy", "accuracy"}}, Scale::kPercent},
    {"Held-out loss", "nats per token", {{"val/loss", "loss"}}},
    {"Reward", "mean reward", {{"critic/rewards/mean", "reward"}}},
    {"Held-out reward", "mean reward", {{"val/reward/mean", "reward"}}},
    {"Failed rewards", "samples without a reward", {{"reward/errors", "training"}, {"val/reward/errors", "held-out"}}},
    {"Preference accuracy",
     "share in order",
     {{"rewards/accuracies", "training"}, {"reward/accuracy", "training"}, {"val/rewards/accuracies", "held-out"}},
     Scale::kPercent},
    {"Preference margin",
     "chosen minus rejected",
     {{"rewards/margins", "training"}, {"reward/margin", "training"}, {"val/rewards/margins", "held-out"}}},
    {"Held-out margin", "chosen minus rejected", {{"val/margin", "held-out"}}},
    {"Loss",
     "loss",
     {{"actor/loss", "trained model"}, {"actor/pg_loss", "policy gradient alone"}, {"critic/vf_loss", "value model"}}},
    {"KL divergence",
     "nats per token",
     {{"actor/ppo_kl", "to the policy that sampled"},
      {"actor/kl_loss", "to the reference"},
      {"actor/reward_kl_penalty", "penalty in the reward"}}},
    {"Completion length",
     "tokens",
     {{"response_length/mean", "mean"},
      {"response_length/min", "shortest"},
      {"response_length/max", "longest"},
      {"val/response_length/mean", "held-out, mean"}}},
    {"Entropy", "nats per token", {{"actor/entropy", "policy"}}},
    {"Gradient norm", "before clipping", {{"actor/grad_norm", "trained model"}, {"critic/grad_norm", "value model"}}},
    {"Learning rate", "learning rate", {{"actor/lr", "trained model"}, {"critic/lr", "value model"}}},
    {"Log-probs: generation against training",
     "difference, nats",
     {{"mismatch/logprob_abs_max", "largest"}, {"mismatch/logprob_abs_mean", "mean"}},
     Scale::kLog},
    {"Clipped tokens",
     "share of tokens",
     {{"actor/pg_clipfrac", "policy"}, {"critic/vf_clipfrac", "value model"}},
     Scale::kPercent},
    {"Speed", "tokens per second", {{"perf/throughput", "whole iteration"}}},
    {"Peak memory",
     kMebibyteAxis,
     {{"memory/peak_bytes", "whole process"}, {"memory/peak_bytes/", ""}},
     Scale::kLinear,
     kMebibytes},
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

std::string name_of(const Chart& chart, const ChartLine& line) { return chart.title + " (" + line.label + ")"; }

// Takes GiB for the axis of memory where its numbers are too long in MiB.
void fit_unit(Chart& chart) {
  constexpr double kMebibytesOfGibibyte = 1024;
  if (chart.unit != kMebibyteAxis || highest(chart) < kMebibytesOfGibibyte) return;
  chart.unit = "GiB";
  for (ChartLine& line : chart.lines) line.series = scaled(std::move(line.series), 1 / kMebibytesOfGibibyte);
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
    chart.lines.push_back({phase_words(entry->first.substr(name.size())), scaled(entry->second, factor)});
  }
}

// Takes out the lines that need no picture, and notes them: those that stayed zero (a picture would show the rounding),
// that never changed, or that another curve of the page shows.
void keep_telling_lines(Chart& chart, Curves& page) {
  std::vector<ChartLine> kept;
  const auto same_as = [&](const ChartLine& line) -> std::string {
    for (const ChartLine& other : kept)
      if (is_same(other.series, line.series)) return name_of(chart, other);
    for (const Chart& drawn : page.charts)
      for (const ChartLine& other : drawn.lines)
        if (is_same(other.series, line.series)) return name_of(drawn, other);
    return "";
  };
  for (ChartLine& line : chart.lines) {
    const std::string name = name_of(chart, line);
    if (is_zero(line.series)) {
      page.zeros.push_back(name);
    } else if (is_constant(line.series)) {
      page.constants.push_back(name + " " + short_number(line.series.y.front(), chart.scale == Scale::kPercent));
    } else if (const std::string other = same_as(line); !other.empty()) {
      page.repeats.push_back(name + " is " + other);
    } else {
      line.style = kept.size();
      kept.push_back(std::move(line));
    }
  }
  chart.lines = std::move(kept);
}

// Charts one metric with a line for each run that has it.
Chart compared(const std::vector<RunData>& runs, const ChartKind& kind, const Wanted& wanted) {
  Chart chart{kind.title, kind.unit, kind.scale, {}};
  for (size_t r = 0; r < runs.size(); ++r) {
    const Series& series = runs[r].series(wanted.metric);
    if (!series.empty()) chart.lines.push_back({runs[r].name, scaled(series, kind.factor), r});
  }
  fit_unit(chart);
  return chart;
}

bool all_lines(const Chart& chart, bool (*holds)(const Series&)) {
  return std::all_of(chart.lines.begin(), chart.lines.end(), [&](const ChartLine& line) { return holds(line.series); });
}

// Writes the values of lines that never change: "fast 0.001, slow 0.0001".
std::string constants_of(const Chart& chart) {
  std::string out;
  for (const ChartLine& line : chart.lines)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", line.label,
                       short_number(line.series.y.front(), chart.scale == Scale::kPercent));
  return out;
}

// Adds a fact of several runs to the page, or notes why it needs no picture.
void add_fact(Chart chart, Curves& page) {
  const auto same = [&](const Chart& drawn) {
    return std::equal(drawn.lines.begin(), drawn.lines.end(), chart.lines.begin(), chart.lines.end(),
                      [](const ChartLine& a, const ChartLine& b) { return is_same(a.series, b.series); });
  };
  const auto drawn = std::find_if(page.charts.begin(), page.charts.end(), same);
  if (all_lines(chart, is_zero))
    page.zeros.push_back(chart.title);
  else if (all_lines(chart, is_constant))
    page.constants.push_back(chart.title + " (" + constants_of(chart) + ")");
  else if (drawn != page.charts.end())
    page.repeats.push_back(chart.title + " is " + drawn->title);
  else
    page.charts.push_back(std::move(chart));
}

bool has_kind(std::string_view metric) {
  for (const ChartKind& kind : kChartKinds)
    for (const Wanted& wanted : kind.lines)
      if (wanted.metric != nullptr && (metric == wanted.metric || (std::string_view(wanted.metric).ends_with('/') &&
                                                                   metric.starts_with(wanted.metric))))
        return true;
  return false;
}

// Returns the held-out numbers of no kind of chart that were measured more than once.
std::vector<std::string> other_held_out(const RunData& run) {
  std::vector<std::string> metrics;
  for (const auto& [metric, series] : run.metrics)
    if (metric.starts_with(kHeldOut) && series.x.size() > 1 && !has_kind(metric)) metrics.push_back(metric);
  return metrics;
}

std::string held_out_name(const std::string& metric) { return metric.substr(kHeldOut.size()); }

// Adds the other held-out numbers. Metrics of one name with several numbers, as pass@2 and pass@4, share a chart.
void add_other_held_out(const RunData& run, Curves& page) {
  std::map<std::string, Chart> charts;
  for (const std::string& metric : other_held_out(run)) {
    const std::string name = held_out_name(metric), shared = name.substr(0, name.find('@'));
    Chart& chart = charts.try_emplace(shared, Chart{"Held-out " + shared, shared, Scale::kLinear, {}}).first->second;
    chart.lines.push_back({name, run.series(metric)});
  }
  for (auto& [name, chart] : charts) {
    keep_telling_lines(chart, page);
    if (!chart.lines.empty()) page.charts.push_back(std::move(chart));
  }
}

void add_other_held_out(const std::vector<RunData>& runs, Curves& page) {
  std::set<std::string> metrics;
  for (const RunData& run : runs)
    for (const std::string& metric : other_held_out(run)) metrics.insert(metric);
  for (const std::string& metric : metrics) {
    const std::string title = "Held-out " + held_out_name(metric);
    add_fact(compared(runs, {title.c_str(), "value", {}}, {metric.c_str()}), page);
  }
}

std::string listed(const char* why, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return names.empty() ? "" : fmt::format(R"(<p class="soft">{}: {}.</p>)", why, escape(out));
}

}  // namespace

Curves curves_of(const RunData& run) {
  Curves curves;
  for (const ChartKind& kind : kChartKinds) {
    Chart chart{kind.title, kind.unit, kind.scale, {}};
    for (const Wanted& wanted : kind.lines)
      if (wanted.metric) add_line(run, wanted, kind.factor, chart);
    fit_unit(chart);
    keep_telling_lines(chart, curves);
    if (!chart.lines.empty()) curves.charts.push_back(std::move(chart));
  }
  add_other_held_out(run, curves);
  return curves;
}

Curves curves_of(const std::vector<RunData>& runs) {
  Curves curves;
  for (const ChartKind& kind : kChartKinds) {
    std::vector<std::pair<std::string, Chart>> facts;  // by the line's label
    for (const Wanted& wanted : kind.lines) {
      if (wanted.metric == nullptr || std::string_view(wanted.metric).ends_with('/')) continue;
      Chart chart = compared(runs, kind, wanted);
      if (!chart.lines.empty()) facts.emplace_back(wanted.label, std::move(chart));
    }
    for (auto& [label, chart] : facts) {
      if (facts.size() > 1) chart.title += ": " + label;
      add_fact(std::move(chart), curves);
    }
  }
  add_other_held_out(runs, curves);
  return curves;
}

std::string draw_curves(const Curves& curves) {
  if (curves.charts.empty() && curves.zeros.empty() && curves.constants.empty()) return "";
  std::string out = R"(<h2>Curves</h2><div class="charts">)";
  for (const Chart& chart : curves.charts) out += draw_chart(chart);
  return out + "</div>" + listed("Zero in every iteration (below 1e-7), so not drawn", curves.zeros) +
         listed("The same in every iteration, so not drawn", curves.constants) +
         listed("The same numbers as another curve, so not drawn", curves.repeats);
}

}  // namespace collimate::report
