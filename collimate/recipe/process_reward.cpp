#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Plans a process reward model (Lightman et al. 2023), which says of each step of an answer whether it is right, from
// answers whose steps are labelled.
Plan process_reward(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  const Page::Role trained{
      .weights = "policy", .trained = true, .head = "score", .rows = "labelled steps", .loss = "step_logistic"};
  const auto model = page.trainer("policy", trained);
  Plan plan;
  plan.graph =
      graph::trace([&](graph::Value steps) { model.train(steps, page.updates()); }, {step_input()}, "process_reward");
  plan.rows_per_iteration = config.train.samples_per_update;
  plan.trained = "policy";
  plan.learns_to_stop = false;  // a score is of the token that ends a step
  plan.evaluations = evaluations(
      page, model, {MeasureKind::kSteps, [&](const AskedMeasure&) { return step_evaluation(model); }, false});
  return page.finish(std::move(plan));
}

}  // namespace collimate::recipe
