#pragma once

#include "collimate/recipe/page.h"

// Evaluation graphs of the pages.
namespace collimate::recipe {

// The policy completes held-out prompts, rewards judge: val/reward/mean, val/accuracy (the share of completions with a
// reward of at least 1; not where a model scores, on a scale of its own), val/response_length/mean. `judge` is a
// reward model, else the config's rules. Nothing without data.eval.
std::optional<EvaluationPlan> rollout_evaluation(Page& page, const graph::ModelHandle& policy,
                                                 const graph::ModelHandle* judge = nullptr);
// val/loss: mean negative log-likelihood of held-out completions.
EvaluationPlan loss_evaluation(const graph::ModelHandle& model);
// val/accuracy: held-out pairs whose chosen row scores higher.
EvaluationPlan pair_score_evaluation(const graph::ModelHandle& model);
// val/accuracy: held-out pairs whose implicit reward is higher for the chosen row: the log-ratio against the reference,
// or, without one (null), the mean log-prob of the answer's tokens.
EvaluationPlan pair_margin_evaluation(const graph::ModelHandle& policy, const graph::ModelHandle* reference);

}  // namespace collimate::recipe
