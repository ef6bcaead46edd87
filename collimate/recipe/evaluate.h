#pragma once

#include "collimate/recipe/page.h"

// Evaluation graphs of the pages. A run records each measure as val/NAME.
namespace collimate::recipe {

// Whether the model also answers the prompts of some rows itself, for people who read samples.
enum class Answers { kNone, kOfAskedRows };

// The policy completes held-out prompts, rewards judge: reward/mean, accuracy (the share of completions with a reward
// of at least kRightReward; not where a model scores, on a scale of its own), response_length/mean, and with several
// samples of each prompt those of sample_measures(). `judge` is a reward model, else the config's rules. Nothing
// without held-out rows.
std::optional<EvaluationPlan> rollout_evaluation(Page& page, const graph::ModelHandle& policy,
                                                 const graph::ModelHandle* judge = nullptr);
// loss, the mean negative log-likelihood of held-out completions, and perplexity, e to that power.
EvaluationPlan loss_evaluation(const graph::ModelHandle& model, Answers answers = Answers::kNone);
// accuracy: held-out pairs whose chosen row scores higher; margin: by how much, on average.
EvaluationPlan pair_score_evaluation(const graph::ModelHandle& model);
// This one compares the mean log-probs of the answers' tokens instead of scores.
EvaluationPlan pair_log_prob_evaluation(const graph::ModelHandle& policy, Answers answers = Answers::kNone);
// rewards/accuracies and rewards/margins, as TRL calls them: the same of DPO's implicit reward, beta times the answer's
// log-ratio of policy and reference.
EvaluationPlan implicit_reward_evaluation(const graph::ModelHandle& policy, const graph::ModelHandle& reference,
                                          double beta, Answers answers = Answers::kNone);

// acc: the questions of which the answer has the largest log-prob among its choices; acc_norm: the largest log-prob by
// character of its text. Of equal ones the first counts, as in lm-evaluation-harness, whose names these are. Rows are
// those of choices.h.
EvaluationPlan choice_evaluation(const graph::ModelHandle& model);

// The log-prob of a row's trainable tokens (kOldLogProbs), and their number.
double answer_log_prob(const Batch& rows, int64_t r);
double answer_tokens(const Batch& rows, int64_t r);

}  // namespace collimate::recipe
