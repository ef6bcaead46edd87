#include "collimate/recipe/evaluate.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// A reward model from preference pairs (Bradley-Terry on the last token's score).
Plan reward(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const auto model = page.trainer(
      "policy",
      {.weights = "policy", .trained = true, .head = "score", .rows = "scored pairs", .loss = "bradley_terry"});
  Plan plan;
  plan.graph = graph::trace([&](graph::Value pairs) { model.train(pairs, page.updates()); }, {pair_input()}, "reward");
  plan.rows_per_iteration = config.train.samples_per_update;
  plan.group_size = 2;
  plan.trained = "policy";
  plan.evaluation = pair_score_evaluation(model);
  return page.finish(std::move(plan));
}

}  // namespace collimate::recipe
