#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Plans a reward model from preference pairs (Bradley-Terry on the last token's score), with margins where the data has
// them.
Plan reward(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const Page::Role trained{
      .weights = "policy", .trained = true, .head = "score", .rows = "scored pairs", .loss = "bradley_terry"};
  const auto model = page.trainer("policy", trained);
  Plan plan = pair_plan(page, trained);
  plan.graph = graph::trace([&](graph::Value pairs) { model.train(pairs, page.updates()); },
                            {pair_input(page.loss(trained))}, "reward");
  plan.evaluations = evaluations(
      page, model, {MeasureKind::kPairs, [&](const AskedMeasure&) { return pair_score_evaluation(model); }, false});
  return page.finish(std::move(plan));
}

}  // namespace collimate::recipe
