#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {
// Plans Kahneman-Tversky optimisation (Ethayarajh et al. 2024) on single answers that are marked as desirable or not,
// with a policy and a frozen reference. The loss kto compares with z, the KL that both models give to answers of other
// prompts.
Plan kto(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const Page::Role trained{.weights = "policy", .trained = true, .rows = "marked", .loss = "kto"};
  const auto policy = page.trainer("policy", trained);
  const auto reference = page.scorer("reference", {.of = "reference", .weights = "reference"});
  Plan plan;
  plan.mismatched = page.loss(trained).reads(rlhf::kKlEstimate);
  if (plan.mismatched) page.require_two_rows();
  std::optional<graph::ModelHandle> estimate;
  if (plan.mismatched) estimate = page.kl_estimate();
  plan.graph = graph::trace(
      [&](graph::Value rows) {
        graph::Value scored = reference("log_probs", rows);
        if (estimate)
          scored = merge(scored, (*estimate)("kl_estimate", merge(policy("mismatched_log_probs", rows),
                                                                  reference("mismatched_reference_log_probs", rows))));
        policy.train(scored, page.updates());
      },
      {marked_input(plan.mismatched)}, "kto");
  plan.rows_per_iteration = config.train.samples_per_update;
  plan.trained = "policy";
  plan.phases = {{"reference.log_probs", "ref"},
                 {"policy.mismatched_log_probs", "old_log_prob"},
                 {"reference.mismatched_reference_log_probs", "ref"},
                 {"kl_estimate", "adv"},
                 {"policy.train", "update_actor"}};
  const double beta = config.algorithm.beta->value_or(rlhf::kPairBeta);
  plan.evaluations = evaluations(page, policy, {MeasureKind::kMarked, [&](const AskedMeasure& asked) {
                                                  return marked_reward_evaluation(asked, policy, reference, beta,
                                                                                  Answers::kOfAskedRows);
                                                }});
  return page.finish(std::move(plan));
}

}  // namespace collimate::recipe
