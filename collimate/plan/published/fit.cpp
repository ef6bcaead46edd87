#include "collimate/plan/published/fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "collimate/base/edit_distance.h"
#include "collimate/plan/inputs/backends.h"
#include "collimate/plan/inputs/median.h"
#include "collimate/plan/published/fitted_rows.h"
#include "collimate/plan/published/text.h"

namespace collimate::plan::published {
namespace {

std::variant<double, std::string> measured(const Row& row, const Scenario& scenario, const Constants& c,
                                           const std::map<std::string, Execution>* layouts = nullptr) {
  const Scenario run = with_lengths(scenario, c);
  return metric_of(row, run, predict(run, c, layouts));
}

constexpr double kPull = 0.003;  // of a factor e away from a default, against a mean error of one per cent

// Of a fit to GPUs. The table's are wider where CPUs need it.
std::pair<double, double> limits_of(double Constants::*member) {
  if (member == &Constants::train_efficiency) return {0.02, 0.75};
  if (member == &Constants::score_efficiency) return {0.02, 0.85};
  // P99 over ten medians (Laminar, DORA) is 1.0; of the 128 lengths that are simulated the last rows are missing.
  if (member == &Constants::length_sigma) return {0.3, 1.5};
  const ConstantInfo& info = constant_info(member);
  return {info.low, info.high};
}

double objective(const std::vector<Sample>& samples, const Constants& c) {
  double pull = 0;
  for (const auto member : fitted_members()) {
    if (member == &Constants::batch_rows) continue;  // its default is no limit, which is no guess
    const double ratio = std::log(c.*member / constant_info(member).value);
    pull += kPull * ratio * ratio;
  }
  return mismatch(samples, c) + pull;
}

// Tries one constant a factor up and down; true when it moved.
bool improve(const std::vector<Sample>& samples, Constants& c, double Constants::*member, double factor, double& best) {
  const auto [low, high] = limits_of(member);
  for (const double by : {factor, 1 / factor}) {
    Constants tried = c;
    tried.*member = std::clamp(c.*member * by, low, high);
    if (const double value = objective(samples, tried); value < best - 1e-9) {
      best = value;
      c = tried;
      return true;
    }
  }
  return false;
}

// Moves every constant by one factor while that helps.
void descend(const std::vector<Sample>& samples, Constants& c, double factor) {
  double best = objective(samples, c);
  for (int round = 0; round < 8; ++round) {
    bool moved = false;
    for (const auto member : fitted_members())
      while (improve(samples, c, member, factor, best)) moved = true;
    if (!moved) return;
  }
}

Constants fit_from(std::vector<Sample> samples, Constants c) {
  const std::vector<Sample> given = samples;
  Constants best = c;
  for (const double factor : {3.0, 1.7, 1.7, 1.3, 1.3, 1.1, 1.1, 1.04}) {
    // Layouts follow the constants from one stage to the next and stand still within it.
    for (Sample& sample : samples) sample.layouts = predict(with_lengths(sample.scenario, c), c).executions;
    descend(samples, c, factor);
    if (objective(given, c) < objective(given, best)) best = c;
  }
  return best;
}

std::vector<std::string> fitted_backends(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    const auto read = scenario_of(row);
    if (const auto* scenario = std::get_if<Scenario>(&read); scenario != nullptr && may_fit(row, *scenario))
      names.insert(scenario->backend);
  }
  return {names.begin(), names.end()};
}

// Fits without the samples of one name and tries on them.
void leave_out(const std::string& kind, const std::string& backend, const std::vector<Sample>& samples,
               const std::function<std::string(const Sample&)>& name_of, std::vector<HeldOut>& out) {
  std::set<std::string> names;
  for (const Sample& sample : samples) names.insert(name_of(sample));
  for (const std::string& name : names) {
    std::vector<Sample> kept, left;
    for (const Sample& sample : samples) (name_of(sample) == name ? left : kept).push_back(sample);
    const Constants c = fit(kept, backend);
    std::vector<double> errors;
    for (const Sample& sample : left) {
      const auto value = measured(*sample.row, sample.scenario, c);
      errors.push_back(std::abs(std::get<double>(value) / sample.published - 1));
    }
    out.push_back({kind, name, backend, static_cast<int>(left.size()), median_of(errors)});
  }
}

}  // namespace

bool may_fit(const Row& row, const Scenario& scenario) {
  const bool stated = !row["gen_len"].empty() && !row["batch"].empty() && !has(row["phase"], "rollout");
  const bool twice = row["unit"] == "PFLOP/s" || row["unit"] == "tok/s/GPU" || has(row["unit"], "steps");
  const bool kept = scenario.backend == "verl" && scenario.devices > 64;
  return stated && !twice && !kept && (row["metric"] == "time" || row["metric"] == "throughput") &&
         find_backend(scenario.backend).fitted;
}

std::vector<Sample> samples_of(const std::vector<Row>& rows, const std::string& backend) {
  const Constants c = constants_of("");
  std::vector<Sample> samples;
  for (const Row& row : rows) {
    const auto read = scenario_of(row);
    const auto* scenario = std::get_if<Scenario>(&read);
    const double value = finite(row["value"]).value_or(0);
    if (scenario == nullptr || scenario->backend != backend || value <= 0 || !may_fit(row, *scenario)) continue;
    if (std::holds_alternative<double>(measured(row, *scenario, c))) samples.push_back({&row, *scenario, value});
  }
  return samples;
}

double mismatch(const std::vector<Sample>& samples, const Constants& c) {
  double sum = 0;
  for (const Sample& sample : samples) {
    const auto* layouts = sample.layouts.empty() ? nullptr : &sample.layouts;
    const auto value = measured(*sample.row, sample.scenario, c, layouts);
    const double ratio = std::holds_alternative<double>(value) ? std::get<double>(value) / sample.published : 1;
    sum += std::sqrt(std::pow(std::log(ratio), 2) + 4e-4);
  }
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

Constants fit(const std::vector<Sample>& samples, const std::string& backend) {
  Constants best = constants_of("");
  if (samples.empty()) return best;
  for (const ConstantInfo& info : constant_table())  // facts about the software
    if (std::find(fitted_members().begin(), fitted_members().end(), info.member) == fitted_members().end())
      best.*info.member = constants_of(backend).*info.member;
  const Constants defaults = best;
  // The layouts that a system chose for itself depend on what splitting a layer costs: one start on each side. A limit
  // of rows in a call is found from near it only.
  struct Start {
    double layer, split, rows;
  };
  for (const auto& [layer, split, rows] :
       {Start{60e-6, 40e-6, 1e6}, {0.5e-3, 0.8e-3, 1e6}, {60e-6, 40e-6, 256}, {0.5e-3, 0.1e-3, 32}}) {
    Constants c = defaults;
    c.decode_layer_seconds = layer;
    c.decode_tp_layer_seconds = split;
    c.batch_rows = rows;
    c = fit_from(samples, c);
    if (objective(samples, c) < objective(samples, best)) best = c;
  }
  return best;
}

std::vector<FittedBackend> fit_all(const std::vector<Row>& rows, const std::vector<std::string>& only) {
  std::vector<FittedBackend> fitted;
  const std::vector<std::string> known = fitted_backends(rows);
  for (const std::string& name : only)
    if (std::find(known.begin(), known.end(), name) == known.end())
      base::throw_unknown_choice("--fit-backend", name, known);
  for (const std::string& backend : known) {
    if (!only.empty() && std::find(only.begin(), only.end(), backend) == only.end()) continue;
    const std::vector<Sample> samples = samples_of(rows, backend);
    const Constants c = fit(samples, backend);
    fitted.push_back({backend, static_cast<int>(samples.size()), mismatch(samples, c), c});
  }
  return fitted;
}

std::vector<FittedRow> rows_to_fit(const std::vector<Row>& rows) {
  std::vector<FittedRow> made;
  for (const std::string& backend : fitted_backends(rows))
    for (const Sample& sample : samples_of(rows, backend)) made.push_back(fitted_row(*sample.row, sample.scenario));
  return made;
}

std::vector<HeldOut> held_out(const std::vector<Row>& rows) {
  std::vector<HeldOut> out;
  for (const std::string& backend : fitted_backends(rows)) {
    const std::vector<Sample> samples = samples_of(rows, backend);
    leave_out(
        "paper", backend, samples, [](const Sample& sample) { return (*sample.row)["paper"]; }, out);
    leave_out(
        "size", backend, samples, [](const Sample& sample) { return (*sample.row)["actor"]; }, out);
  }
  return out;
}

}  // namespace collimate::plan::published
