// Predicts published runs and fits constants to them. Reads one JSON document from stdin, as report.py writes it, and
// writes one to stdout.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/published/fit.h"
#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/lower_case.h"
#include "collimate/plan/inputs/backends.h"

namespace {

using namespace collimate::plan;
using namespace collimate::plan::published;
using nlohmann::json;

// Returns a model of the table whose name ends with the text, ignoring case, or null. Only texts of at least 6
// characters count: `30B-A3B` ends the name of only one model.
const collimate::shape::Outline* by_ending(const std::string& asked) {
  const std::string text = collimate::base::lower_case(asked);
  if (text.size() < 6) return nullptr;
  for (const std::string& name : collimate::shape::outline_names())
    if (name.ends_with(text)) return collimate::shape::outline_named(name);
  return nullptr;
}

// Returns the name of the model that has one of the names, or else of the dense one of that size in billions; null if
// there is none.
json model_named(const json& asked) {
  const collimate::shape::Outline* found = nullptr;
  for (const auto& name : asked.at("names"))
    if (found == nullptr) found = collimate::shape::outline_named(name);
  for (const auto& name : asked.at("names"))
    if (found == nullptr) found = by_ending(name);
  if (const double billions = asked.at("billions"); found == nullptr && billions > 0) found = dense_outline(billions);
  return found == nullptr ? json() : json(found->name);
}

// Returns what the program's tables know about models and GPUs named in a results file, and about back ends.
json known_of(const json& texts, const DeviceKinds& kinds) {
  json known = {{"reasoned_share", kReasonedShare}, {"fitted", json::array()}};
  for (const auto& [text, asked] : texts.at("models").items()) known["models"][text] = model_named(asked);
  for (const std::string text : texts.at("gpus")) {
    const auto kind = kinds.named(text);
    known["gpus"][text] = kind ? json(kind->name) : json();
  }
  for (const Backend& backend : backends()) {
    known["mean_tokens"][backend.name] = constants_of(backend.name).mean_tokens;
    if (backend.fitted) known["fitted"].push_back(backend.name);
  }
  return known;
}

// Returns the features by which report.py tells how alike two runs are.
json features_of(const Scenario& s) {
  return {{"parameters", collimate::shape::total_parameters(s.models.at("actor"))},
          {"completion", s.load.completion.mean()}};
}

json result_of(const Scenario& read, const Measure& measure, const ConstantsOf& constants) {
  const Scenario scenario = with_lengths(read, constants(read.backend));
  const Prediction prediction = predict(scenario, constants(scenario.backend));
  const auto value = value_of(measure, scenario, prediction, constants);
  if (const auto* reason = std::get_if<std::string>(&value)) return {{"reason", *reason}};
  if (!std::isfinite(std::get<double>(value))) return {{"reason", "no finite prediction"}};
  return {{"predicted", std::get<double>(value)},
          {"read_features", features_of(read)},
          {"run_features", features_of(scenario)}};
}

json fits_of(const std::map<std::string, Samples>& samples, const std::vector<std::string>& only) {
  std::vector<std::string> known;
  for (const auto& [backend, own] : samples) known.push_back(backend);
  for (const std::string& name : only)
    if (!samples.contains(name)) collimate::base::throw_unknown_choice("--fit-backend", name, known);
  json fits = json::array();
  for (const auto& [backend, own] : samples) {
    if (!only.empty() && std::find(only.begin(), only.end(), backend) == only.end()) continue;
    const Constants c = fit(own, backend);
    json values = json::array();
    for (const ConstantInfo& info : constant_table())
      if (is_fitted_member(info.member)) values.push_back({info.name, c.*info.member});
    fits.push_back({{"backend", backend},
                    {"rows", own.size()},
                    {"mean_log_error", mismatch(own, c)},
                    {"values", values},
                    {"source", backend_row(backend, c)}});
  }
  return fits;
}

Sample sample_of(const json& row, const DeviceKinds& kinds, int number) {
  return {scenario_of(row.at("run"), kinds),
          measure_of(row.at("measure"), kinds),
          row.at("published"),
          row.at("paper"),
          row.at("size"),
          number};
}

json answer_to(const json& asked) {
  DeviceKinds kinds;
  for (const std::string device : asked.at("devices")) kinds.set(device);
  if (asked.contains("texts")) return known_of(asked.at("texts"), kinds);
  const ConstantsOf constants = [&](const std::string& backend) {
    Constants made = constants_of(backend);
    for (const std::string set : asked.at("sets")) set_constant(made, set);
    return made;
  };
  constants("");  // throws here for wrong constants, which are no row's fault
  json answer = {{"results", json::array()}, {"fitted", json::array()}};
  Samples may_fit;
  for (const json& row : asked.at("rows")) {
    const Sample sample = sample_of(row, kinds, static_cast<int>(answer.at("results").size()));
    try {
      answer["results"].push_back(result_of(sample.scenario, sample.measure, constants));
    } catch (const collimate::base::InputError& error) {  // a layout that contradicts the devices
      answer["results"].push_back({{"reason", error.what()}});
    }
    if (asked.at("samples").get<bool>() && row.at("may_fit").get<bool>()) may_fit.push_back(sample);
  }
  const std::map<std::string, Samples> samples = by_backend(may_fit);
  for (const auto& [backend, own] : samples)
    for (const Sample& sample : own) answer["fitted"].push_back(sample.row);
  if (asked.at("held_out")) answer["held_out"] = held_out(samples);
  if (asked.at("fit")) answer["fits"] = fits_of(samples, asked.at("fit_backends"));
  return answer;
}

}  // namespace

int main() {
  try {
    std::cout << answer_to(json::parse(std::cin)).dump() << "\n";
    return 0;
  } catch (const collimate::base::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {  // a document that is no JSON, or not as report.py writes it
    std::fprintf(stderr, "[bench_published] %s\n", error.what());
    return 2;
  }
}
