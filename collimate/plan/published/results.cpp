#include "collimate/plan/published/results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/plan/inputs/median.h"
#include "collimate/plan/published/fit.h"
#include "collimate/plan/published/fitted_rows.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

Result named(const Row& row) {
  Result result;
  result.id = row["id"];
  result.paper = row["paper"];
  result.system = row["system"];
  result.metric = row["metric"];
  result.unit = row["unit"];
  return result;
}

// "100", or "1.8-2.5", of which the second is the high end.
bool read_value(const Row& row, Result& result) {
  const std::string& value = row["value"];
  if (row["metric"] == "status") {
    result.published = result.published_high = has(value, "OOM") ? 1 : 0;
    return !value.empty();
  }
  const auto range = match(value, R"(^\s*([0-9.]+) ?(?:-|–|to) ?([0-9.]+)\s*$)");
  const std::optional<double> low = finite(range ? (*range)[0] : value);
  if (!low || *low <= 0) return false;
  result.published = result.published_high = *low;
  for (const std::string& text : {range ? (*range)[1] : std::string(), row["value_hi"]})
    if (const double high = finite(text).value_or(0); high > result.published) result.published_high = high;
  return true;
}

void set_error(Result& result) {
  if (result.metric == "status") {
    result.error = result.predicted == result.published ? 0 : 1;
  } else if (result.predicted > result.published_high) {
    result.error = result.predicted / result.published_high - 1;
  } else if (result.predicted < result.published) {
    result.error = result.predicted / result.published - 1;
  }
}

// Time of the baseline over time of the system, each by its own software.
std::variant<double, std::string> speed_up(const Row& row, const Scenario& scenario, const Prediction& prediction,
                                           const ConstantsOf& constants) {
  const auto other = baseline_of(row);
  if (const auto* reason = std::get_if<std::string>(&other)) return "baseline: " + *reason;
  const Scenario& named = std::get<Scenario>(other);
  const Scenario baseline = with_lengths(named, constants(named.backend));
  if (baseline.backend == scenario.backend && row["placement"].empty())
    return "baseline differs in nothing that the row says";
  return predict(baseline, constants(baseline.backend)).step_seconds / prediction.step_seconds;
}

std::variant<double, std::string> value_of(const Row& row, const Scenario& scenario, const ConstantsOf& constants) {
  try {
    const Prediction prediction = predict(scenario, constants(scenario.backend));
    return row["metric"] == "speed-up" ? speed_up(row, scenario, prediction, constants)
                                       : metric_of(row, scenario, prediction);
  } catch (const base::InputError& error) {
    return std::string(error.what());  // a layout that contradicts the devices
  }
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> made(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) made[order[k]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return made;
}

// Published and predicted times of one unit.
struct Times {
  std::vector<double> published, predicted;
};

// Over units of at least three rows, by rows: times of different units have no order.
double pooled_rank(const std::map<std::string, Times>& units) {
  double sum = 0, rows = 0;
  for (const auto& [unit, times] : units) {
    if (times.published.size() < 3) continue;
    const double count = static_cast<double>(times.published.size());
    sum += count * rank_correlation(times.published, times.predicted);
    rows += count;
  }
  return rows > 0 ? sum / rows : 0;
}

void add_to(Summary& summary, const std::vector<const Result*>& results) {
  std::vector<double> errors, unseen;
  std::map<std::string, Times> units;
  for (const Result* result : results) {
    ++summary.rows;
    if (!result->modelled()) continue;
    ++summary.predicted;
    if (result->metric == "status") {
      ++summary.status_rows;
      summary.status_right += result->error == 0;
      continue;
    }
    errors.push_back(std::abs(result->error));
    if (result->fitted) ++summary.fitted;
    if (!result->fitted) unseen.push_back(std::abs(result->error));
    if (result->metric != "time") continue;
    units[result->unit].published.push_back(result->published);
    units[result->unit].predicted.push_back(result->predicted);
  }
  summary.median_error = median_of(errors);
  summary.median_not_fitted = median_of(unseen);
  summary.rank_correlation = pooled_rank(units);
}

// A reason for rows of which nothing can be said; else the prediction in `result`.
std::string predict_row(const Row& row, const ConstantsOf& constants, Result& result) {
  if (!row.fault.empty()) return row.fault;
  if (!read_value(row, result)) return "no one value: '" + row["value"] + "'";
  const auto read = scenario_of(row);
  if (const auto* reason = std::get_if<std::string>(&read)) return *reason;
  const std::string& backend = std::get<Scenario>(read).backend;
  const Scenario scenario = with_lengths(std::get<Scenario>(read), constants(backend));
  const auto value = value_of(row, scenario, constants);
  if (const auto* reason = std::get_if<std::string>(&value)) return *reason;
  result.predicted = std::get<double>(value);
  if (!std::isfinite(result.predicted)) return "no finite prediction";
  result.may_fit = may_fit(row, scenario);
  result.fitted = is_fitted(row, std::get<Scenario>(read));
  result.nearest_fitted = result.fitted ? row["id"] : nearest_fitted(scenario);
  set_error(result);
  return "";
}

}  // namespace

Result evaluate_row(const Row& row, const ConstantsOf& constants) {
  Result result = named(row);
  result.reason = predict_row(row, constants, result);
  return result;
}

std::vector<Result> evaluate(const std::vector<Row>& rows, const ConstantsOf& constants) {
  std::vector<Result> results;
  for (const Row& row : rows) results.push_back(evaluate_row(row, constants));
  return results;
}

std::vector<Summary> summarise(const std::vector<Result>& results) {
  std::vector<Summary> summaries;
  std::vector<std::string> papers;
  for (const Result& result : results)
    if (std::find(papers.begin(), papers.end(), result.paper) == papers.end()) papers.push_back(result.paper);
  papers.emplace_back("all");
  for (const std::string& paper : papers) {
    std::vector<const Result*> chosen;
    for (const Result& result : results)
      if (paper == "all" || result.paper == paper) chosen.push_back(&result);
    summaries.push_back({paper});
    add_to(summaries.back(), chosen);
  }
  return summaries;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = static_cast<double>(x.size() - 1) / 2;
  double both = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? both / std::sqrt(xx * yy) : 0;
}

}  // namespace collimate::plan::published
