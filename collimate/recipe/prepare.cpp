#include "collimate/recipe/prepare.h"

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/cpu.h"
#include "collimate/recipe/list.h"

namespace collimate::recipe {

namespace {

// What only both of its options say to be wrong.
void check_sampling(const Config& config, const Plan& plan) {
  const int64_t completion = config.rollout.completion_tokens;
  if (plan.rows == rlhf::RowKind::kPrompt) config.rollout.params(completion);
  if (plan.evaluation && plan.evaluation->rows == rlhf::RowKind::kPrompt) config.evaluation.params(completion);
}

}  // namespace

Plan complete_plan(const Config& config, const flow::Registry& registry) {
  Plan plan = make_plan(config, registry);
  if (config.data.eval->is_null()) plan.evaluation.reset();
  if (plan.evaluation)
    for (const auto& [name, model] : plan.evaluation->graph.models) plan.graph.models.try_emplace(name, model);
  check_sampling(config, plan);
  if (plan.rows_per_iteration <= 0)
    throw base::InputError(base::expectation("train.samples_per_update", "at least 1 with this recipe", "0"));
  return plan;
}

graph::Placement make_placement(const Config& config, const graph::Graph& graph) {
  const nlohmann::json& value = config.placement;
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  graph::Placement placement;
  if (name == "flattening") {
    placement = graph::flattening(graph, static_cast<int>(config.devices.get()));
  } else if (!name.empty()) {
    placement = graph::parse_placement(host::read_file(name), name);
  } else {
    placement = graph::parse_placement(value.dump(), "placement");
  }
  graph::validate(graph, placement);
  for (const auto& [model, residency] : placement.residency)
    if (residency == graph::Residency::kSwap)
      throw base::InputError(base::expectation("placement.residency." + model, "device", "swap",
                                               "leaving it out: the recipes' models stay where they are"));
  return placement;
}

int threads_of(const Config& config, const graph::Placement& placement) {
  if (config.run.threads > 0) return static_cast<int>(config.run.threads.get());
  return std::max(1, host::core_count() / placement.devices);
}

}  // namespace collimate::recipe
