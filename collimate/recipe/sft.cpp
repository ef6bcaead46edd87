#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Plans supervised fine-tuning on prompt + completion. One iteration is one optimizer step.
Plan sft(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const auto policy =
      page.trainer("policy", {.weights = "policy", .trained = true, .rows = "completions", .loss = "nll"});
  Plan plan;
  plan.graph =
      graph::trace([&](graph::Value examples) { policy.train(examples, page.updates()); }, {completion_input()}, "sft");
  plan.rows_per_iteration = config.train.samples_per_update;
  plan.trained = "policy";
  plan.phases = {{"policy.train", "update_actor"}};
  plan.evaluations = evaluations(page, policy, {MeasureKind::kPerplexity, [&](const AskedMeasure&) {
                                                  return loss_evaluation(policy, Answers::kOfAskedRows);
                                                }});
  return page.finish(std::move(plan));
}

}  // namespace collimate::recipe
