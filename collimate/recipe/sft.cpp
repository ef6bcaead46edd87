#include "collimate/recipe/evaluate.h"
#include "collimate/recipe/plan.h"

namespace collimate::recipe {

// Supervised fine-tuning on prompt + completion: one iteration is one optimizer step.
Plan sft(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const auto policy = page.trainer("policy", {.weights = "policy", .trained = true, .loss = "sft"});
  Plan plan;
  plan.graph =
      graph::trace([&](graph::Value examples) { policy.train(examples, page.updates()); }, {completion_input()}, "sft");
  plan.rows = rlhf::RowKind::kCompletion;
  plan.rows_per_iteration = config.train.samples_per_update;
  plan.trained = "policy";
  plan.evaluation = loss_evaluation(policy);
  plan.modules = page.modules();
  return plan;
}

}  // namespace collimate::recipe
