#include "collimate/recipe/prepare.h"

#include <algorithm>
#include <utility>

#include "collimate/base/config_text.h"
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

// A placement may say more than the recipes' modules do: it is refused, not ignored.
void check_supported(const graph::Placement& placement) {
  for (const auto& [model, residency] : placement.residency)
    if (residency == graph::Residency::kSwap)
      throw base::InputError(base::expectation("placement.residency." + model, "device", "swap",
                                               "leaving it out: the recipes' models stay where they are"));
  for (const auto& [model, functions] : placement.layouts)
    for (const auto& [function, layout] : functions) {
      graph::Layout whole;
      whole.dp = layout.dp;
      if (layout == whole) continue;
      throw base::InputError(base::expectation(
          fmt::format("placement.layouts.{}.{}", model, function), "dp alone",
          fmt::format("tp {}, pp {}, cp {}, ep {}, zero {}, micro_batch {}", layout.tp, layout.pp, layout.cp, layout.ep,
                      layout.zero, layout.micro_batch),
          "leaving the others out: each rank of a recipe's model holds all of it; train.micro_batch_tokens bounds its "
          "micro-batches"));
    }
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
  check_supported(placement);
  return placement;
}

std::string resolved_text(const Config& config, const Plan& plan) {
  base::ConfigNode root = config.section_value();
  base::ConfigNode& algorithm = root.child("algorithm");
  const base::ConfigNode all = std::exchange(algorithm, base::ConfigNode{.kind = base::ConfigNode::Kind::kMap});
  for (size_t i = 0; i < all.keys.size(); ++i)
    if (plan.read_options.contains(all.keys[i])) algorithm.child(all.keys[i]) = all.children[i];
  return base::block_yaml(root);
}

int threads_of(const Config& config, const graph::Placement& placement) {
  if (config.run.threads > 0) return static_cast<int>(config.run.threads.get());
  return std::max(1, host::core_count() / placement.devices);
}

}  // namespace collimate::recipe
