#pragma once

#include <functional>
#include <vector>

#include "collimate/recipe/page.h"

// These are the evaluation graphs of the pages. A run records each measure as val/NAME.
namespace collimate::recipe {

// Says whether the model also answers the prompts of some rows itself, for people who read samples.
enum class Answers { kNone, kOfAskedRows };

// Describes what a recipe measures by itself: the word for it, and how it is planned.
struct OwnMeasure {
  MeasureKind measured;
  std::function<EvaluationPlan(const AskedMeasure& asked)> plan;
  bool completes = true;  // the trained model is a language model: all else can be measured of it too
};

// Plans what the config's evaluation.measure asks for, else the recipe's own measure. Without held-out rows nothing is
// measured, and a model that would answer some of their prompts for people answers some of data.train. Metrics of the
// own measure are val/NAME, and those of any other are val/MEASURE/NAME, unless its entry has a name. The policy's
// weights are those that `trainer` trains. `judge` is a reward model that judges where no rules do. Throws InputError
// for what cannot be measured, and for measures of one name.
std::vector<EvaluationPlan> evaluations(Page& page, const graph::ModelHandle& trainer, const OwnMeasure& own,
                                        const graph::ModelHandle* judge = nullptr);

// Plans an evaluation in which the policy completes held-out prompts and rewards judge. Measures: reward/mean, accuracy
// (the share of completions with a reward of at least kRightReward; not where a model scores, on a scale of its own),
// response_length/mean, and with several samples of each prompt those of sample_measures(). `judge`, a reward model,
// gives the rewards unless `asked` has rules of its own. Without it the rules of `asked` or of the config do.
EvaluationPlan completion_evaluation(Page& page, const AskedMeasure& asked, const graph::ModelHandle& policy,
                                     const graph::ModelHandle* judge = nullptr);
// Plans loss, the mean negative log-likelihood of a token of held-out completions, in nats, and perplexity, e to that
// power.
EvaluationPlan loss_evaluation(const graph::ModelHandle& model, Answers answers = Answers::kNone);
// Plans those two, and divergence: how far the policy's distribution of each token is from the teacher's, in nats, as
// the loss measures it.
EvaluationPlan divergence_evaluation(const graph::ModelHandle& policy, const graph::ModelHandle& teacher,
                                     Answers answers = Answers::kNone);
// Plans accuracy, the share of held-out pairs whose chosen row scores higher, and margin, by how much on average.
EvaluationPlan pair_score_evaluation(const graph::ModelHandle& model);
// Does so with the mean log-probs of the answers' tokens as scores.
EvaluationPlan pair_log_prob_evaluation(const graph::ModelHandle& policy, Answers answers = Answers::kNone);
// Plans rewards/accuracies and rewards/margins, as TRL calls them: accuracy and margin of DPO's implicit reward, which
// is beta times the answer's log-ratio of policy and reference. Where pairs are `asked` for by their word, accuracy and
// margin of pair_log_prob_evaluation follow.
EvaluationPlan implicit_reward_evaluation(const AskedMeasure& asked, const graph::ModelHandle& policy,
                                          const graph::ModelHandle& reference, double beta,
                                          Answers answers = Answers::kNone);

// Plans accuracy and margin of marked answers, whose score is the mean log-prob of their tokens. accuracy: how often a
// held-out answer that is marked desirable scores higher than one that is not, over all such twos, ties counting half
// (the area under the ROC curve); margin: by how much, on average. Measuring throws InputError where no row, or every
// one, is desirable.
EvaluationPlan marked_log_prob_evaluation(const graph::ModelHandle& policy);
// Plans rewards/accuracies and rewards/margins: accuracy and margin of KTO's implicit reward, which is beta times the
// answer's log-ratio of policy and reference. Where marked answers are `asked` for by their word, accuracy and margin
// of marked_log_prob_evaluation follow.
EvaluationPlan marked_reward_evaluation(const AskedMeasure& asked, const graph::ModelHandle& policy,
                                        const graph::ModelHandle& reference, double beta,
                                        Answers answers = Answers::kNone);

// Plans accuracy, the share of held-out steps of which the model says what their labels do, and loss, the mean negative
// log-likelihood of a label, in nats.
EvaluationPlan step_evaluation(const graph::ModelHandle& model);

// Plans acc, the share of questions whose answer has the largest log-prob among its choices, and acc_norm, where that
// is the largest log-prob by character of its text. Of equal choices the first counts, as in lm-evaluation-harness,
// whose names these are. Rows are those of choices.h.
EvaluationPlan choice_evaluation(const graph::ModelHandle& model);

// Return the log-prob of a row's trainable tokens (kOldLogProbs), and their number.
double answer_log_prob(const Batch& rows, int64_t r);
double answer_tokens(const Batch& rows, int64_t r);

}  // namespace collimate::recipe
