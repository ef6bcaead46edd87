#include "collimate/cli/plan_request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/nearest_number.h"
#include "collimate/cli/machine_file.h"
#include "collimate/host/base_model.h"
#include "collimate/host/file_io.h"
#include "collimate/plan/form.h"
#include "collimate/plan/inputs/backends.h"
#include "collimate/plan/inputs/flows.h"
#include "collimate/plan/inputs/shadow.h"
#include "collimate/plan/layout/fixed.h"

namespace collimate::cli {
namespace {

namespace plan = collimate::plan;

std::string role_of(const std::string& text, const graph::Graph& graph) {
  const size_t equals = text.find('=');
  const std::string role = equals == std::string::npos ? "policy" : text.substr(0, equals);
  std::vector<std::string> known;
  for (const auto& [name, model] : graph.models)
    if (std::any_of(model.functions.begin(), model.functions.end(),
                    [](const graph::FunctionSpec& spec) { return spec.kind != graph::Kind::kHost; }))
      known.push_back(name);
  if (std::find(known.begin(), known.end(), role) != known.end()) return role;
  if (graph.models.contains(role))
    throw base::InputError(base::expectation("--models", fmt::format("one of {}", fmt::join(known, ", ")),
                                             "'" + role + "', which runs on the host and has no weights"));
  for (const auto& [other, name] : {std::pair("actor", "policy"), std::pair("critic", "value"),
                                    std::pair("ref", "reference"), std::pair("rm", "reward")})
    if (role == other && std::find(known.begin(), known.end(), name) != known.end())
      throw base::InputError(base::expectation("--models", fmt::format("one of {}", fmt::join(known, ", ")),
                                               "'" + role + "'", fmt::format("'{}'", name)));
  base::throw_unknown_choice("--models", role, known);
}

// Reads --lora: "policy_trainer=64", or "policy=64", which also names the policy's trainer if that is a separate model.
void read_lora(const PlanOptions& options, plan::Request& request) {
  std::vector<std::string> trains;
  for (const auto& [name, model] : request.graph.models)
    if (request.graph.trains(name)) trains.push_back(name);
  for (const std::string& text : options.lora) {
    const size_t equals = std::min(text.find('='), text.size());
    std::string name = text.substr(0, equals);
    const auto is_trained = [&](const std::string& model) {
      return std::find(trains.begin(), trains.end(), model) != trains.end();
    };
    if (!is_trained(name) && is_trained(name + "_trainer")) name += "_trainer";
    if (!is_trained(name)) base::throw_unknown_choice("--lora", name, trains);
    char* end = nullptr;
    const std::string rank = text.substr(std::min(equals + 1, text.size()));
    const long value = std::strtol(rank.c_str(), &end, 10);
    if (rank.empty() || *end != '\0' || value < 1 || value > 65536)
      throw base::InputError(base::expectation("--lora " + name, "a rank from 1 to 65536", "'" + rank + "'",
                                               name + "=" + base::nearest_number(rank, 1, 65536, "64", true)));
    request.lora[name] = value;
  }
}

void read_models(const PlanOptions& options, plan::Request& request) {
  std::set<std::string> seen;
  for (const std::string& text : options.models) {
    const std::string role = role_of(text, request.graph);
    if (!seen.insert(role).second)
      throw base::InputError(base::expectation("--models", "each model once", "'" + role + "' twice",
                                               "MODEL=NAME for each; a name alone is the policy's"));
    request.models[role] = shape::find_outline(host::base_directory(split_model(text).second));
  }
}

void read_flow(const PlanOptions& options, PlanRequest& made) {
  if (options.flow->empty())
    throw base::InputError(base::expectation("plan", "CONFIG.yaml, or --flow with --models and --cluster", "neither",
                                             "--flow ppo --models llama2-7b --cluster 8xA100"));
  if (!options.sets->empty())
    throw base::InputError(base::expectation("--set", "a config whose keys it overrides", "none", "--constant"));
  made.request.graph = options.flow->ends_with(".json") ? graph::parse(host::read_file(options.flow.get()))
                                                        : plan::flow_of(options.flow);
  for (const auto& [name, missing] :
       {std::pair("--models", options.models->empty()), std::pair("--cluster", options.cluster->empty())})
    if (missing)
      throw base::InputError(
          base::expectation(name, "a value with --flow", "none", "--models llama2-7b --cluster 8xA100"));
}

// Reads a length. Throws InputError for a fixed length that is no whole number of tokens.
plan::Lengths lengths_of(const std::string& text, const std::string& option) {
  const plan::Lengths lengths = plan::Lengths::parse(text, option);
  const double whole = std::max(std::nearbyint(lengths.mean()), 1.0);
  if (text.find(':') == std::string::npos && lengths.mean() != whole)
    throw base::InputError(
        base::expectation(option, "whole tokens", "'" + text + "'", fmt::format("{} {:.0f}", option, whole)));
  return lengths;
}

void read_lengths(const PlanOptions& options, plan::Workload& load) {
  if (options.rows.get()) load.rows = static_cast<double>(**options.rows);
  if (options.updates.get())
    load.updates = static_cast<int>(std::min<int64_t>(**options.updates, std::numeric_limits<int>::max()));
  else if (options.config->empty())
    load.updates = static_cast<int>(std::min<double>(load.updates, load.rows));
  if (!options.prompt->empty()) load.prompt = lengths_of(options.prompt, "--prompt");
  if (!options.completion->empty()) load.completion = lengths_of(options.completion, "--completion");
  load.staleness = static_cast<int>(options.staleness->value_or(0));
}

double price_of(const std::string& text) {
  char* end = nullptr;
  const double price = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(price) || price < 0)
    throw base::InputError(base::expectation("--price", "dollars of one device for an hour", "'" + text + "'",
                                             "--price 1.6, or A100-80=1.6,H100-80=2.5"));
  return price;
}

// Sets the prices from "1.6", for every kind, or from "KIND=1.6,…".
void set_prices(const std::string& text, plan::Request& request) {
  std::istringstream list(text + ",");
  for (std::string part; std::getline(list, part, ',');) {
    const size_t equals = part.find('=');
    const double price = price_of(part.substr(equals == std::string::npos ? 0 : equals + 1));
    const std::string kind = equals == std::string::npos ? "" : request.kinds.find(part.substr(0, equals)).name;
    bool known = false;
    for (plan::NodeGroup& group : request.cluster.groups)
      if (kind.empty() || kind == group.gpu.name) {
        group.gpu.dollars_per_hour = price;
        group.gpu.price_given = true;
        known = true;
      }
    if (!known)
      throw base::InputError(
          base::expectation("--price", fmt::format("kinds of device of {}", plan::cluster_text(request.cluster)),
                            "'" + kind + "'", fmt::format("{}={}", request.cluster.groups.front().gpu.name, price)));
  }
}

void read_layouts(const PlanOptions& options, plan::Request& request) {
  request.form = options.form;
  if (const auto& forms = plan::form_names();
      !request.form.empty() && std::find(forms.begin(), forms.end(), request.form) == forms.end())
    base::throw_unknown_choice("--form", request.form, forms);
  request.micro_batch = options.micro_batch->value_or(0);
  if (!options.layouts->empty()) {
    if (options.layouts != "any" && options.layouts != "dp")
      base::throw_unknown_choice("--layouts", options.layouts, {"any", "dp"});
    request.whole = options.layouts == "dp";
  }
  for (const std::string& text : options.fixed) plan::fix_layout(request, text);
  // A config may have more updates than rows, as it may train several epochs on them: so it is not checked.
  if (options.config->empty() || options.rows.get() || options.updates.get()) plan::check_workload(request);
  plan::check_fixed(request);
}

// Returns the back end whose constants are taken if none is named.
std::string own_back_end(const plan::Cluster& devices) {
  return devices.has_cpus() ? std::string(plan::kOwnCpuBackend) : "";
}

PlanRequest read_request(const PlanOptions& options) {
  PlanRequest made;
  made.request.kinds = device_kinds_of(options);
  if (!options.config->empty() && !options.flow->empty())
    throw base::InputError(base::expectation("plan", "CONFIG.yaml or --flow", "both", "leaving one of them out"));
  if (options.config->empty())
    read_flow(options, made);
  else
    read_plan_config(options, made);
  plan::Request& request = made.request;
  const plan::Machine machine = machine_of(options);
  use_lengths(machine, options, made);
  for (const std::string& model : options.shadows) plan::add_shadow(request, model);
  read_models(options, request);
  read_lora(options, request);
  read_lengths(options, request.load);
  if (!options.cluster->empty()) request.cluster = plan::parse_cluster(options.cluster, request.kinds);
  request.constants = constants_of(options, machine, request.cluster);
  request.software = !options.machine->empty()  ? options.machine.get()
                     : options.backend->empty() ? own_back_end(request.cluster)
                                                : options.backend.get();
  if (!options.price->empty()) set_prices(options.price, request);
  made.iterations = options.iterations->value_or(made.iterations);
  read_layouts(options, request);
  if (options.config->empty() || !options.prompt->empty() || !options.completion->empty())
    plan::check_positions(request);
  use_module_settings(made);
  use_memory_budget(options, made);
  return made;
}

}  // namespace

plan::Constants constants_of(const PlanOptions& options, const plan::Machine& machine, const plan::Cluster& devices) {
  plan::Constants constants =
      plan::constants_of(options.backend->empty() ? own_back_end(devices) : options.backend.get());
  plan::apply(machine, constants);
  for (const std::string& text : options.constants) plan::set_constant(constants, text);
  return constants;
}

plan::DeviceKinds device_kinds_of(const PlanOptions& options) {
  plan::DeviceKinds kinds;
  for (const std::string& text : options.devices) kinds.set(text);
  return kinds;
}

PlanRequest plan_request(const PlanOptions& options) {
  try {
    return read_request(options);
  } catch (const base::InputError& error) {
    const std::string text = error.what();  // "[cluster] expected …"
    if (options.file.empty() || !text.starts_with('[')) throw;
    throw base::InputError(fmt::format("[{}: request, {}", options.file, text.substr(1)));
  }
}

}  // namespace collimate::cli
