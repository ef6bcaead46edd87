#pragma once

#include "collimate/recipe/plan.h"

// Evaluation graphs of the pages, and what the pages call their inputs.
namespace collimate::recipe {

graph::Input prompt_input();      // prompts to complete
graph::Input completion_input();  // prompt + completion
graph::Input pair_input();        // chosen, rejected

// The policy completes held-out prompts, rewards judge: val/reward/mean, val/accuracy (reward at least 1),
// val/response_length/mean. `judge` is a reward model, else the config's rules. Nothing without data.eval.
std::optional<EvaluationPlan> rollout_evaluation(Page& page, const graph::ModelHandle& policy,
                                                 const graph::ModelHandle* judge = nullptr);
// val/loss: mean negative log-likelihood of held-out completions.
EvaluationPlan loss_evaluation(const graph::ModelHandle& model);
// val/accuracy: held-out pairs whose chosen row scores higher.
EvaluationPlan pair_score_evaluation(const graph::ModelHandle& model);
// val/accuracy: held-out pairs whose implicit reward (log-ratio against the reference) is higher for the chosen row.
EvaluationPlan pair_margin_evaluation(const graph::ModelHandle& policy, const graph::ModelHandle& reference);

}  // namespace collimate::recipe
