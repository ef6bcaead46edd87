#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Plans direct preference optimisation (Rafailov et al. 2023) and its kin, on pairs with a policy. There is a frozen
// reference where the loss compares with one, as ORPO, CPO and SimPO do not.
Plan dpo(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const Page::Role trained{.weights = "policy", .trained = true, .rows = "pairs", .loss = "sigmoid"};
  const auto policy = page.trainer("policy", trained);
  const rlhf::Loss loss = page.loss(trained);
  std::optional<graph::ModelHandle> reference;
  page.may_read("reference");
  if (loss.reads(batch::kReferenceLogProbs))
    reference = page.scorer("reference", {.of = "reference", .weights = "reference"});
  Plan plan = pair_plan(page, trained);
  plan.graph = graph::trace(
      [&](graph::Value pairs) { policy.train(reference ? (*reference)("log_probs", pairs) : pairs, page.updates()); },
      {pair_input(loss)}, "dpo");
  const double beta = config.algorithm.beta->value_or(rlhf::kPairBeta);
  plan.evaluations = evaluations(page, policy, {MeasureKind::kPairs, [&](const AskedMeasure& asked) {
                                                  return reference
                                                             ? implicit_reward_evaluation(asked, policy, *reference,
                                                                                          beta, Answers::kOfAskedRows)
                                                             : pair_log_prob_evaluation(policy, Answers::kOfAskedRows);
                                                }});
  return page.finish(std::move(plan));
}

}  // namespace collimate::recipe
