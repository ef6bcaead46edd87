#include "collimate/recipe/evaluate.h"
#include "collimate/recipe/plan.h"

namespace collimate::recipe {

// Direct preference optimisation (Rafailov et al. 2023) and its kin: pairs, a policy and a frozen reference.
Plan dpo(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const auto policy = page.trainer("policy", {.weights = "policy", .trained = true, .loss = "dpo"});
  const auto reference = page.scorer("reference", {.of = "reference", .weights = "reference"});
  Plan plan;
  plan.graph = graph::trace([&](graph::Value pairs) { policy.train(reference("log_probs", pairs), page.updates()); },
                            {pair_input()}, "dpo");
  plan.rows = rlhf::RowKind::kPreference;
  plan.rows_per_iteration = config.train.samples_per_update;
  plan.group_size = 2;
  plan.trained = "policy";
  plan.evaluation = pair_margin_evaluation(policy, reference);
  plan.modules = page.modules();
  return plan;
}

}  // namespace collimate::recipe
