#include "bench/published/scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "collimate/plan/inputs/constants.h"

namespace collimate::plan::published {
namespace {

using nlohmann::json;

// Returns the outline of a model by name, or a plain decoder of so many layers of the given width, with heads of 128
// and an MLP four times as wide.
shape::Outline outline_of(const json& model) {
  if (model.is_string()) return shape::find_outline(model);
  const int64_t layers = model.at("layers"), hidden = model.at("hidden");
  return {"gpt", layers, hidden, hidden / 128, hidden / 128, 128, 4 * hidden, 50257, false, true, 2048};
}

// Returns the device kind with the devices per node and the network that are given, if they are.
DeviceKind gpu_of(const json& given, const DeviceKinds& kinds) {
  DeviceKind gpu = kinds.find(given.at("kind"));
  if (const int in_node = given.at("per_node"); in_node > 0) gpu.per_node = in_node;
  if (const double bits = given.at("network_bits"); bits > 0) gpu.network_bytes_per_second = bits / 8 / gpu.per_node;
  return gpu;
}

// Returns the size in billions that a name ends with: 6.7 for opt-6.7b, 0.35 for opt-350m.
double named_billions(const std::string& name) {
  const double size = std::strtod(name.c_str() + name.rfind('-') + 1, nullptr);
  return name.ends_with('m') ? size / 1000 : size;
}

RoleLayout layout_of(const json& sizes) {
  const auto size = [&](const char* name) { return sizes.value(name, 0); };
  return {size("tp"), size("pp"), size("ep"), size("devices"), size("cp"), size("dp")};
}

void merge_sizes(RoleLayout& into, const RoleLayout& from) {
  for (int RoleLayout::*size :
       {&RoleLayout::tp, &RoleLayout::pp, &RoleLayout::ep, &RoleLayout::cp, &RoleLayout::dp, &RoleLayout::devices})
    if (from.*size > 0) into.*size = from.*size;
}

}  // namespace

RoleLayout Scenario::layout(const std::string& role) const {
  RoleLayout made;
  for (const std::string& name : {std::string(), role})
    if (const auto found = layouts.find(name); found != layouts.end()) merge_sizes(made, found->second);
  return made;
}

Scenario with_lengths(Scenario scenario, const Constants& c) {
  const double cap = scenario.completion_cap;
  if (cap <= 0) return scenario;
  double mean = scenario.mean_completion, sigma = constant_info(&Constants::length_sigma).value;
  if (mean <= 0 && scenario.short_answers) {
    mean = std::min(c.mean_tokens, cap / 2);
    sigma = c.length_sigma;
  }
  scenario.load.completion = Lengths::capped_mean(mean > 0 ? mean : kReasonedShare * cap, sigma, cap);
  return scenario;
}

const shape::Outline* dense_outline(double billions) {
  const auto gap = [billions](double size) { return std::abs(std::log(size / billions)); };
  const shape::Outline* best = nullptr;
  std::pair<double, double> nearest = {std::log(1.12), 0};
  for (const std::string& name : shape::outline_names()) {
    const shape::Outline& model = *shape::outline_named(name);
    const double named = named_billions(name);
    const std::pair<double, double> here = {gap(named), gap(shape::total_parameters(model) / 1e9)};
    if (model.experts.count > 0 || here >= nearest) continue;
    best = &model;
    nearest = here;
  }
  return best;
}

Scenario scenario_of(const json& run, const DeviceKinds& kinds) {
  Scenario scenario;
  run.get_to(scenario);
  scenario.gpu = gpu_of(run.at("gpu"), kinds);
  for (const auto& [role, model] : run.at("models").items()) scenario.models[role] = outline_of(model);
  scenario.load.prompt = Lengths::fixed(run.at("prompt"));
  scenario.load.completion = Lengths::fixed(run.at("completion"));
  scenario.load.rows = run.at("rows");
  scenario.load.updates = run.at("updates");
  scenario = with_lengths(scenario, constants_of(scenario.backend));
  for (const auto& [role, place] : run.at("places").items()) scenario.places[role] = {place.at(0), place.at(1)};
  for (const auto& [role, sizes] : run.at("layouts").items()) scenario.layouts[role] = layout_of(sizes);
  scenario.unfused = scenario.unfused && scenario.models.at("actor").gated;
  if (const double tokens = run.at("call_tokens"); tokens > 0)
    scenario.call_rows = std::max(1.0, std::floor(tokens / scenario.load.longest()));
  return scenario;
}

}  // namespace collimate::plan::published
