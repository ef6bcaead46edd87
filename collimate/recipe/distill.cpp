#include "collimate/recipe/evaluation/graphs.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Plans knowledge distillation on prompts and their answers. The student learns, at each token of an answer, the
// distribution that a frozen teacher has there (Hinton et al. 2015). The student itself draws a share of the answers
// (GKD, Agarwal et al. 2023). One iteration is one optimizer step.
Plan distill(const Config& config, const flow::Registry& registry) {
  Page page(config, registry);
  page.check_taught();
  const bool draws = config.redraws();
  std::optional<graph::ModelHandle> generator;
  if (draws) generator = page.redrawer("policy", {.weights = "policy", .trained = true});
  Plan plan;
  plan.trained = draws ? "policy_trainer" : "policy";
  const auto trainer = page.trainer(
      plan.trained, {.weights = "policy", .trained = true, .rows = "taught completions", .loss = "forward_kl"});
  const auto teacher = page.teacher();
  plan.graph = graph::trace(
      [&](graph::Value examples) {
        trainer.train(teacher("teacher_lists", draws ? (*generator)("generate", examples) : examples), page.updates());
        if (draws) link(trainer, *generator);
      },
      {draws ? redrawn_input() : completion_input()}, "distill");
  plan.rows_per_iteration = config.train.samples_per_update;
  plan.phases = {{"policy.generate", "gen"},
                 {"teacher.teacher_lists", "teacher"},
                 {"policy.train", "update_actor"},
                 {"policy_trainer.train", "update_actor"}};
  plan.evaluations =
      evaluations(page, trainer, {MeasureKind::kPerplexity, [&](const AskedMeasure&) {
                                    return divergence_evaluation(trainer, teacher, Answers::kOfAskedRows);
                                  }});
  return page.finish(std::move(plan));
}

}  // namespace collimate::recipe
