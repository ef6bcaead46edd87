#include "collimate/plan/published/results.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "collimate/base/error.h"
#include "collimate/plan/inputs/median.h"
#include "collimate/plan/published/fit.h"
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

bool read_value(const Row& row, Result& result) {
  if (row["metric"] == "status") {
    result.published = result.published_high = has(row["value"], "OOM") ? 1 : 0;
    return true;
  }
  char* end = nullptr;
  result.published = result.published_high = std::strtod(row["value"].c_str(), &end);
  if (row["value"].empty() || *end != '\0' || result.published <= 0) return false;
  if (const double high = std::strtod(row["value_hi"].c_str(), nullptr); high > result.published)
    result.published_high = high;
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
  const Scenario& baseline = std::get<Scenario>(other);
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

// How alike two runs are: sizes by their logarithms, software and GPU above all.
double distance(const Scenario& a, const Scenario& b) {
  const auto gap = [](double x, double y) { return std::abs(std::log(x / y)); };
  return (a.backend == b.backend ? 0 : 100) + (a.gpu.name == b.gpu.name ? 0 : 10) + gap(a.devices, b.devices) +
         gap(shape::total_parameters(a.models.at("actor")), shape::total_parameters(b.models.at("actor"))) +
         gap(a.load.completion.mean(), b.load.completion.mean()) + gap(a.load.rows, b.load.rows) +
         (a.sharing == b.sharing ? 0 : 1);
}

struct Known {
  std::string id;
  Scenario scenario;
};

std::string nearest(const Scenario& scenario, const std::vector<Known>& fitted) {
  const auto best = std::min_element(fitted.begin(), fitted.end(), [&](const Known& a, const Known& b) {
    return distance(scenario, a.scenario) < distance(scenario, b.scenario);
  });
  return best == fitted.end() ? "" : best->id;
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

void add_to(Summary& summary, const std::vector<const Result*>& results) {
  std::vector<double> errors, unseen, published, predicted;
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
    published.push_back(result->published);
    predicted.push_back(result->predicted);
  }
  summary.median_error = median_of(errors);
  summary.median_not_fitted = median_of(unseen);
  summary.rank_correlation = published.size() < 3 ? 0 : rank_correlation(published, predicted);
}

}  // namespace

Result evaluate_row(const Row& row, const ConstantsOf& constants) {
  Result result = named(row);
  if (!read_value(row, result)) {
    result.reason = "no one value: '" + row["value"] + "'";
    return result;
  }
  const auto read = scenario_of(row);
  if (const auto* reason = std::get_if<std::string>(&read)) {
    result.reason = *reason;
    return result;
  }
  const Scenario& scenario = std::get<Scenario>(read);
  const auto value = value_of(row, scenario, constants);
  if (const auto* reason = std::get_if<std::string>(&value)) {
    result.reason = *reason;
    return result;
  }
  result.predicted = std::get<double>(value);
  result.fitted = may_fit(row, scenario);
  set_error(result);
  return result;
}

std::vector<Result> evaluate(const std::vector<Row>& rows, const ConstantsOf& constants) {
  std::vector<Result> results;
  std::vector<Known> fitted;
  for (const Row& row : rows) {
    results.push_back(evaluate_row(row, constants));
    if (results.back().modelled() && results.back().fitted)
      fitted.push_back({results.back().id, std::get<Scenario>(scenario_of(row))});
  }
  for (size_t i = 0; i < rows.size(); ++i)
    if (results[i].modelled())
      results[i].nearest_fitted =
          results[i].fitted ? results[i].id : nearest(std::get<Scenario>(scenario_of(rows[i])), fitted);
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
