#pragma once

#include <functional>
#include <vector>

#include "collimate/recipe/page.h"

// Evaluation graphs of the pages. A run records each measure as val/NAME.
namespace collimate::recipe {

// Whether the model also answers the prompts of some rows itself, for people who read samples.
enum class Answers { kNone, kOfAskedRows };

// A recipe measures this by itself: the word for it, and how.
struct OwnMeasure {
  MeasureKind measured;
  std::function<EvaluationPlan(const AskedMeasure& asked)> plan;
  bool completes = true;  // the trained model is a language model: all else can be measured of it too
};

// Plans what the config's evaluation.measure asks for, else the recipe's own measure. Without held-out rows nothing is
// measured: a model that would answer some of their prompts for people answers some of data.train. Metrics of the own
// measure are val/NAME, those of any other val/MEASURE/NAME, unless its entry has a name. The policy's weights are
// those that `trainer` trains; `judge` is a reward model that judges where no rules do. InputError for what cannot be
// measured, and for measures of one name.
std::vector<EvaluationPlan> evaluations(Page& page, const graph::ModelHandle& trainer, const OwnMeasure& own,
                                        const graph::ModelHandle* judge = nullptr);

// The policy completes held-out prompts, rewards judge: reward/mean, accuracy (the share of completions with a reward
// of at least kRightReward; not where a model scores, on a scale of its own), response_length/mean, and with several
// samples of each prompt those of sample_measures(). `judge` is a reward model, else the rules of what is asked or of
// the config.
EvaluationPlan completion_evaluation(Page& page, const AskedMeasure& asked, const graph::ModelHandle& policy,
                                     const graph::ModelHandle* judge = nullptr);
// loss, the mean negative log-likelihood of held-out completions, and perplexity, e to that power.
EvaluationPlan loss_evaluation(const graph::ModelHandle& model, Answers answers = Answers::kNone);
// Gives those two, and divergence: how far the policy's distribution of each token is from the teacher's, in nats, as
// the loss measures it.
EvaluationPlan divergence_evaluation(const graph::ModelHandle& policy, const graph::ModelHandle& teacher,
                                     Answers answers = Answers::kNone);
// accuracy: held-out pairs whose chosen row scores higher; margin: by how much, on average.
EvaluationPlan pair_score_evaluation(const graph::ModelHandle& model);
// Compares the mean log-probs of the answers' tokens instead of scores.
EvaluationPlan pair_log_prob_evaluation(const graph::ModelHandle& policy, Answers answers = Answers::kNone);
// rewards/accuracies and rewards/margins, as TRL calls them: the same of DPO's implicit reward, beta times the answer's
// log-ratio of policy and reference; with accuracy and margin of pair_log_prob_evaluation where pairs are `asked` for
// by their word.
EvaluationPlan implicit_reward_evaluation(const AskedMeasure& asked, const graph::ModelHandle& policy,
                                          const graph::ModelHandle& reference, double beta,
                                          Answers answers = Answers::kNone);

// accuracy: how often a held-out answer that is marked desirable scores higher than one that is not, over all two of
// them, ties counting half (the area under the ROC curve); margin: by how much, on average. By the mean log-prob of an
// answer's tokens. InputError where no row, or every one, is desirable.
EvaluationPlan marked_log_prob_evaluation(const graph::ModelHandle& policy);
// rewards/accuracies and rewards/margins: the same of KTO's implicit reward, beta times the answer's log-ratio of
// policy and reference; with accuracy and margin of marked_log_prob_evaluation where marked answers are `asked` for by
// their word.
EvaluationPlan marked_reward_evaluation(const AskedMeasure& asked, const graph::ModelHandle& policy,
                                        const graph::ModelHandle& reference, double beta,
                                        Answers answers = Answers::kNone);

// acc: the questions of which the answer has the largest log-prob among its choices; acc_norm: the largest log-prob by
// character of its text. Of equal ones the first counts, as in lm-evaluation-harness, whose names these are. Rows are
// those of choices.h.
EvaluationPlan choice_evaluation(const graph::ModelHandle& model);

// The log-prob of a row's trainable tokens (kOldLogProbs), and their number.
double answer_log_prob(const Batch& rows, int64_t r);
double answer_tokens(const Batch& rows, int64_t r);

}  // namespace collimate::recipe
