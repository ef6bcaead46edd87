#include "collimate/cli/auto_placement.h"

#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/cli/plan_search.h"
#include "collimate/cli/this_machine.h"
#include "collimate/graph/placement.h"
#include "collimate/plan/search/search.h"
#include "collimate/plan/show/plan_text.h"

namespace collimate::cli {
namespace {

constexpr const char* kAuto = "auto";

// Returns the file of constants that the placement names, "" if it names none, and nothing if it does not ask the
// planner.
std::optional<std::string> constants_file(const nlohmann::json& placement) {
  if (placement == kAuto) return "";
  if (!placement.is_object() || !placement.contains(kAuto)) return std::nullopt;
  if (placement.size() != 1 || !placement.at(kAuto).is_string())
    throw base::InputError(base::expectation("placement", "auto, or {auto: FILE} with a file of constants",
                                             placement.dump(), "placement: {auto: machine.yaml}"));
  return placement.at(kAuto).get<std::string>();
}

// Reads the placement of the run in a directory. Returns null if there is no run, or its placement is not a map.
nlohmann::json recorded_placement(const std::string& run) {
  const std::filesystem::path file = std::filesystem::path(run) / "config.resolved.yaml";
  if (run.empty() || !std::filesystem::exists(file)) return nullptr;
  const base::ConfigNode before = base::load_config(file).root;  // as plain YAML, without loading plugins
  const base::ConfigNode* placement = before.find("placement");
  return placement != nullptr && placement->kind == base::ConfigNode::Kind::kMap ? base::to_json(*placement) : nullptr;
}

// Returns " where policy, value take turns, as run.memory_budget has no room for all models", or "" if no model does.
std::string turns_text(const graph::Placement& placement) {
  std::vector<std::string> models;
  for (const auto& [model, residency] : placement.residency) models.push_back(model);
  if (models.empty()) return "";
  return fmt::format(" where {} take turns, as run.memory_budget has no room for all models", fmt::join(models, ", "));
}

// " with models split over devices, as …"; "" where each is whole.
const char* split_text(const PlanOptions& options) {
  return options.layouts->empty() ? "" : ", with layouts of every kind, as whole models fit no device";
}

}  // namespace

void choose_placement(recipe::Config& config, const std::string& path, const std::vector<std::string>& sets,
                      const std::string& run) {
  namespace plan_ = collimate::plan;
  const std::optional<std::string> constants = constants_file(config.placement.get());
  if (!constants) return;
  if (const nlohmann::json recorded = recorded_placement(run); !recorded.is_null()) {
    config.placement = recorded;
    std::fprintf(stderr, "placement: as in the run in %s\n", run.c_str());
    return;
  }
  PlanOptions options;
  options.config = path;
  options.sets = sets;
  options.machine = *constants;
  options.iterations = 1;  // placements are compared by the time of one iteration
  PlanRequest made = plan_request(options);
  plan_::Request& request = made.request;
  std::string source = "read from " + *constants;
  if (constants->empty()) {
    const ThisMachine found = this_machine(config.devices);
    plan_::apply(found.machine, request.constants);
    source = found.source;
  }
  request.keep = 1;
  const plan_::SearchResult result = search_plans(options, made);
  plan_::require_plan(request, result);
  const plan_::Plan& best = result.plans.front();
  config.placement = graph::to_json(best.placement);
  std::fprintf(stderr,
               "placement: %s (%s)%s, %.3g s an iteration of rows as long as the config allows, by the "
               "planner's constants of this CPU, %s\n",
               best.form.c_str(), best.parts.c_str(), (turns_text(best.placement) + split_text(options)).c_str(),
               best.seconds, source.c_str());
}

}  // namespace collimate::cli
