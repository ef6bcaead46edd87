#include <utility>

#include "collimate/base/error.h"
#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/list.h"

namespace collimate::recipe {
namespace {

// Measures the trained weights as `collimate eval` measures a model.
EvaluationPlan other_evaluation(Page& page, const AskedMeasure& asked, const graph::ModelHandle& trainer,
                                const graph::ModelHandle* judge) {
  if (asked.measured == MeasureKind::kSteps)
    throw base::InputError(base::expectation(asked.key, "a measure of language models",
                                             "steps, which process reward models score", "recipe: process_reward"));
  const int64_t row_tokens = longest_row(page.config(), asked);
  if (asked.measured == MeasureKind::kCompletions)
    return completion_evaluation(page, asked, page.measuring("generator", trainer, row_tokens), judge);
  page.reads("data.max_tokens");
  const graph::ModelHandle model = page.measuring("scorer", trainer, row_tokens);
  if (asked.measured == MeasureKind::kPairs) return pair_log_prob_evaluation(model);
  if (asked.measured == MeasureKind::kMarked) return marked_log_prob_evaluation(model);
  return asked.measured == MeasureKind::kChoices ? choice_evaluation(model) : loss_evaluation(model);
}

// Returns an evaluation of the training's rows, so that people see what the model answers even without held-out rows.
std::vector<EvaluationPlan> answers_alone(const OwnMeasure& own) {
  if (own.measured == MeasureKind::kCompletions) return {};  // the iterations' samples show it
  EvaluationPlan plan = own.plan({});
  if (!plan.answers) return {};
  plan.of_training = true;
  plan.measures_loss = false;
  return {std::move(plan)};
}

void refuse_second(const std::vector<EvaluationPlan>& plans, const EvaluationPlan& plan) {
  for (const EvaluationPlan& other : plans)
    if (other.name == plan.name)
      throw base::InputError(
          base::expectation(plan.asked.key, fmt::format("a name of its own, as {} is measured too", other.asked.key),
                            plan.name.empty() ? "none" : plan.name,
                            fmt::format("{{measure: {}, name: NAME}}", words_of(plan.measured).name(plan.measured))));
}

}  // namespace

std::vector<EvaluationPlan> evaluations(Page& page, const graph::ModelHandle& trainer, const OwnMeasure& own,
                                        const graph::ModelHandle* judge) {
  if (own.measured == MeasureKind::kCompletions) page.reads("evaluation");
  const std::vector<AskedMeasure> all = asked_measures(page.config());
  if (all.empty()) return answers_alone(own);
  std::vector<EvaluationPlan> plans;
  for (const AskedMeasure& asked : all) {
    const bool is_own = asked.measured.value_or(own.measured) == own.measured;
    if (!is_own && !own.completes)
      throw base::InputError(
          base::expectation(asked.key,
                            fmt::format("{} with recipe {}, whose model gives scores alone",
                                        words_of(own.measured).name(own.measured), page.config().recipe.get()),
                            words_of(*asked.measured).name(*asked.measured), "leaving it out"));
    EvaluationPlan plan = is_own ? own.plan(asked) : other_evaluation(page, asked, trainer, judge);
    plan.asked = asked;
    plan.name = !asked.name.empty() ? asked.name : is_own ? "" : words_of(plan.measured).name(plan.measured);
    plan.measures_loss = plan.measures_loss && plan.name.empty();
    refuse_second(plans, plan);
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace collimate::recipe
