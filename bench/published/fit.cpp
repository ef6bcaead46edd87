#include "bench/published/fit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "collimate/plan/inputs/backends.h"
#include "collimate/plan/inputs/median.h"

namespace collimate::plan::published {
namespace {

std::variant<double, std::string> measured(const Sample& sample, const Constants& c,
                                           const std::map<std::string, Execution>* layouts = nullptr) {
  const Scenario run = with_lengths(sample.scenario, c);
  return value_of(sample.measure, run, predict(run, c, layouts), {});
}

constexpr double kPull = 0.003;  // cost of a constant a factor of e away from its default; 0.01 is a 1 % mean error

// Returns the limits of a constant in a fit to GPUs. The limits of the table are wider where CPUs need it.
std::pair<double, double> limits_of(double Constants::*member) {
  if (member == &Constants::train_efficiency) return {0.02, 0.75};
  if (member == &Constants::score_efficiency) return {0.02, 0.85};
  // A 99th percentile of ten medians (Laminar, DORA) is a sigma of 1.0. More is allowed, because the 128 lengths that
  // are simulated lack the last rows.
  if (member == &Constants::length_sigma) return {0.3, 1.5};
  const ConstantInfo& info = constant_info(member);
  return {info.low, info.high};
}

double objective(const Samples& samples, const Constants& c) {
  double pull = 0;
  for (const auto member : fitted_members()) {
    if (member == &Constants::batch_rows) continue;  // the default means no limit, so it pulls nowhere
    const double ratio = std::log(c.*member / constant_info(member).value);
    pull += kPull * ratio * ratio;
  }
  return mismatch(samples, c) + pull;
}

// Tries one constant a factor up and down. Returns true when it moved.
bool improve(const Samples& samples, Constants& c, double Constants::*member, double factor, double& best) {
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

// Moves every constant by one factor as long as that lowers the objective, for at most 8 rounds.
void descend(const Samples& samples, Constants& c, double factor) {
  double best = objective(samples, c);
  for (int round = 0; round < 8; ++round) {
    bool moved = false;
    for (const auto member : fitted_members())
      while (improve(samples, c, member, factor, best)) moved = true;
    if (!moved) return;
  }
}

Constants fit_from(Samples samples, Constants c) {
  const Samples given = samples;
  Constants best = c;
  for (const double factor : {3.0, 1.7, 1.7, 1.3, 1.3, 1.1, 1.1, 1.04}) {
    // Layouts are chosen anew for each factor and kept while constants move by it.
    for (Sample& sample : samples) sample.layouts = predict(with_lengths(sample.scenario, c), c).executions;
    descend(samples, c, factor);
    if (objective(given, c) < objective(given, best)) best = c;
  }
  return best;
}

// Fits without the samples of one paper or size, for each in turn, and adds the error on those samples to `out`.
void leave_out(const std::string& kind, const std::string& backend, const Samples& samples,
               std::string Sample::*name_of, std::vector<HeldOut>& out) {
  std::set<std::string> names;
  for (const Sample& sample : samples) names.insert(sample.*name_of);
  for (const std::string& name : names) {
    Samples kept, left;
    for (const Sample& sample : samples) (sample.*name_of == name ? left : kept).push_back(sample);
    const Constants c = fit(kept, backend);
    std::vector<double> errors;
    for (const Sample& sample : left) {
      const auto value = measured(sample, c);
      errors.push_back(std::abs(std::get<double>(value) / sample.published - 1));
    }
    out.push_back({kind, name, backend, static_cast<int>(left.size()), median_of(errors)});
  }
}

}  // namespace

std::map<std::string, Samples> by_backend(const Samples& samples) {
  const Constants c = constants_of("");
  std::map<std::string, Samples> made;
  for (const Sample& sample : samples)
    if (std::holds_alternative<double>(measured(sample, c))) made[sample.scenario.backend].push_back(sample);
  return made;
}

double mismatch(const Samples& samples, const Constants& c) {
  double sum = 0;
  for (const Sample& sample : samples) {
    const auto* layouts = sample.layouts.empty() ? nullptr : &sample.layouts;
    const auto value = measured(sample, c, layouts);
    const double ratio = std::holds_alternative<double>(value) ? std::get<double>(value) / sample.published : 1;
    sum += std::sqrt(std::pow(std::log(ratio), 2) + 4e-4);
  }
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

Constants fit(const Samples& samples, const std::string& backend) {
  Constants best = constants_of("");
  if (samples.empty()) return best;
  for (const ConstantInfo& info : constant_table())  // constants that no fit moves are facts about the software
    if (!is_fitted_member(info.member)) best.*info.member = constants_of(backend).*info.member;
  const Constants defaults = best;
  // The layouts that a system chose for itself depend on what splitting a layer costs, so the fit starts from low and
  // from high costs. A limit of rows in a call is only found from a start near it.
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

const std::array<double Constants::*, 12>& fitted_members() {
  using C = Constants;
  static constexpr std::array kMembers = {
      &C::train_efficiency,    &C::score_efficiency, &C::decode_layer_seconds, &C::decode_tp_layer_seconds,
      &C::update_seconds,      &C::phase_seconds,    &C::layer_seconds,        &C::network_efficiency,
      &C::decode_step_seconds, &C::batch_rows,       &C::mean_tokens,          &C::length_sigma};
  return kMembers;
}

bool is_fitted_member(double Constants::*member) {
  return std::find(fitted_members().begin(), fitted_members().end(), member) != fitted_members().end();
}

std::string backend_row(const std::string& backend, const Constants& fitted) {
  std::vector<std::string> values;
  const auto add = [&](double Constants::*member, const std::string& value) {
    values.push_back(fmt::format("{{&C::{}, {}}}", constant_info(member).name, value));
  };
  const Backend& known = find_backend(backend);
  for (const auto member : fitted_members())
    add(member, fmt::format("{}", std::stod(fmt::format("{:.3g}", fitted.*member))));
  for (const auto& [member, value] : known.values)
    if (!is_fitted_member(member)) add(member, fmt::format("{}", value));
  return fmt::format("    {{.name = \"{}\",\n     .fitted = true,\n     .values = {{{}}},\n     .source = \"{}\"}},\n",
                     backend, fmt::join(values, ",\n                "), known.source);
}

std::vector<HeldOut> held_out(const std::map<std::string, Samples>& samples) {
  std::vector<HeldOut> out;
  for (const auto& [backend, own] : samples) {
    leave_out("paper", backend, own, &Sample::paper, out);
    leave_out("size", backend, own, &Sample::size, out);
  }
  return out;
}

}  // namespace collimate::plan::published
