#include "collimate/recipe/evaluation/graphs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "collimate/batch/standard_keys.h"

namespace collimate::recipe {
namespace {

using graph::Value;

// Returns the sum of a per-token column over a row's trainable tokens.
double trainable_sum(const Batch& rows, const Key<float>& key, int64_t r) {
  const auto values = rows.row(key, r);
  const auto trainable = rows.row(batch::kTrainable, r);
  double sum = 0;
  for (size_t t = 0; t < values.size(); ++t) sum += trainable[t] != 0 ? values[t] : 0.F;
  return sum;
}

// Returns the log-prob of a choice, or that by character of its text.
double choice_score(const Batch& rows, int64_t r, bool by_character) {
  const double sum = answer_log_prob(rows, r);
  return by_character ? sum / rows.json(batch::kExample, r).at("characters").get<double>() : sum;
}

bool is_answer(const Batch& rows, int64_t r) { return rows.json(batch::kExample, r).at("is_answer").get<bool>(); }

// Returns the prompts of the rows with their samples, which stand together in the order of the prompts.
std::vector<GradedPrompt> graded_prompts(const Batch& rows) {
  std::vector<GradedPrompt> prompts;
  const bool answers = rows.has(rlhf::kAnswer.name);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const int64_t uid = rows.get(batch::kPromptUid, r);
    if (prompts.empty() || prompts.back().uid != uid) prompts.push_back({uid, {}});
    prompts.back().samples.push_back({rows.get(batch::kReward, r), answers ? rows.get(rlhf::kAnswer, r) : 0});
  }
  return prompts;
}

double completion_tokens(const Batch& rows, int64_t r) {
  return static_cast<double>(rows.length(batch::kIds.name, r) - rows.get(batch::kPromptTokens, r));
}

// Leaves out what asks for right samples when a model has `scored` them, as 1 means nothing on its scale.
std::vector<Measure> rollout_measures(const Batch& rows, int64_t samples, bool scored) {
  Measure reward{"reward/mean"}, accuracy{"accuracy"}, length{"response_length/mean"};
  int64_t row = 0;
  const std::vector<GradedPrompt> prompts = graded_prompts(rows);
  for (const GradedPrompt& prompt : prompts) {
    double rewards = 0, right = 0, tokens = 0;
    for (const GradedSample& sample : prompt.samples) {
      rewards += sample.reward;
      right += sample.reward >= kRightReward ? 1 : 0;
      tokens += completion_tokens(rows, row++);
    }
    const auto count = static_cast<double>(prompt.samples.size());
    reward.add(prompt.uid, rewards, count);
    accuracy.add(prompt.uid, right, count);
    length.add(prompt.uid, tokens, count);
  }
  std::vector<Measure> measures = {std::move(reward)};
  if (!scored) measures.push_back(std::move(accuracy));
  measures.push_back(std::move(length));
  if (samples == 1) return measures;
  for (Measure& measure : sample_measures(prompts, samples, !scored)) measures.push_back(std::move(measure));
  return measures;
}

std::vector<Measure> loss_measures(const Batch& rows) {
  Measure loss{"loss"};
  for (int64_t r = 0; r < rows.rows(); ++r)
    loss.add(rows.get(batch::kUid, r), -answer_log_prob(rows, r), answer_tokens(rows, r));
  Measure perplexity = loss;
  perplexity.name = "perplexity";
  perplexity.exponential = true;
  return {std::move(loss), std::move(perplexity)};
}

Measure divergence_measure(const Batch& rows) {
  Measure divergence{"divergence"};
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto tokens = rows.row(rlhf::kDivergence, r);
    divergence.add(rows.get(batch::kUid, r), std::accumulate(tokens.begin(), tokens.end(), 0.0),
                   answer_tokens(rows, r));
  }
  return divergence;
}

struct PairNames {
  std::string accuracy = "accuracy", margin = "margin";
};

// Returns the share of the pairs (rows 2i, 2i + 1) whose first row has the larger number, ties counting half, and the
// mean difference.
std::vector<Measure> pair_measures(const Batch& rows, const RowNumber& number, const PairNames& names) {
  Measure accuracy{names.accuracy}, margin{names.margin};
  for (int64_t r = 0; r + 1 < rows.rows(); r += 2) {
    const int64_t pair = rows.get(batch::kPairUid, r);
    const double difference = number.of(rows, r) - number.of(rows, r + 1);
    accuracy.add(pair, difference > 0 ? 1 : difference == 0 ? 0.5 : 0);
    margin.add(pair, difference);
  }
  return {std::move(accuracy), std::move(margin)};
}

std::vector<Measure> marked_row_measures(const Batch& rows, const RowNumber& number, const PairNames& names) {
  std::vector<MarkedNumber> marked;
  for (int64_t r = 0; r < rows.rows(); ++r)
    marked.push_back({rows.get(batch::kUid, r), number.of(rows, r), rows.get(rlhf::kDesirable, r) != 0.F});
  return marked_measures(marked, names.accuracy, names.margin);
}

// Returns for each question, whose rows stand together, whether the choice with the largest log-prob is the answer. Of
// equal choices the first counts.
std::vector<Measure> choice_measures(const Batch& rows) {
  Measure plain{"acc"}, normalised{"acc_norm"};
  for (int64_t first = 0, end = 0; first < rows.rows(); first = end) {
    const int64_t question = rows.get(batch::kPromptUid, first);
    int64_t best = first, best_normalised = first;
    for (end = first; end < rows.rows() && rows.get(batch::kPromptUid, end) == question; ++end) {
      if (choice_score(rows, end, false) > choice_score(rows, best, false)) best = end;
      if (choice_score(rows, end, true) > choice_score(rows, best_normalised, true)) best_normalised = end;
    }
    plain.add(question, is_answer(rows, best) ? 1 : 0);
    normalised.add(question, is_answer(rows, best_normalised) ? 1 : 0);
  }
  return {std::move(plain), std::move(normalised)};
}

// Returns the log-odds that the model gives a row's steps, of which it has as many as its trainable tokens, and whether
// each step is right.
std::vector<std::pair<double, bool>> scored_steps(const Batch& rows, int64_t r) {
  const auto ends = rows.row(batch::kTrainable, r);
  const auto scores = rows.row(rlhf::kStepScores, r), right = rows.row(rlhf::kStepRight, r);
  std::vector<std::pair<double, bool>> steps;
  for (size_t t = 0; t < ends.size(); ++t)
    if (ends[t] != 0) steps.emplace_back(scores[t], right[t] != 0);
  return steps;
}

std::vector<Measure> step_measures(const Batch& rows) {
  Measure accuracy{"accuracy"}, loss{"loss"};
  for (int64_t r = 0; r < rows.rows(); ++r) {
    double same = 0, nats = 0;
    const auto steps = scored_steps(rows, r);
    for (const auto& [score, right] : steps) {
      same += (score > 0) == right ? 1 : 0;
      const double doubt = right ? -score : score;
      nats += std::max(doubt, 0.0) + std::log1p(std::exp(-std::abs(doubt)));
    }
    accuracy.add(rows.get(batch::kUid, r), same, static_cast<double>(steps.size()));
    loss.add(rows.get(batch::kUid, r), nats, static_cast<double>(steps.size()));
  }
  return {std::move(accuracy), std::move(loss)};
}

double lowest_step_score(const Batch& rows, int64_t r) {
  double lowest = std::numeric_limits<double>::infinity();
  for (const auto& [score, right] : scored_steps(rows, r)) lowest = std::min(lowest, score);
  return lowest;
}

void with_answers(const graph::ModelHandle& model, const Value& rows, Answers answers) {
  if (answers == Answers::kOfAskedRows) model("answers", rows);
}
graph::Input input_for(Answers answers, graph::Input input) {
  return answers == Answers::kOfAskedRows ? asked(std::move(input)) : input;
}

// Plans an evaluation of pairs by a number of each row.
EvaluationPlan pair_evaluation(graph::Graph graph, RowNumber number, const PairNames& names = {}) {
  EvaluationPlan plan{.measured = MeasureKind::kPairs};
  plan.graph = std::move(graph);
  plan.measures = [number, names](const Batch& rows) { return pair_measures(rows, number, names); };
  plan.row_number = std::move(number);
  return plan;
}

graph::Graph traced_against(const graph::ModelHandle& policy, const graph::ModelHandle& reference, graph::Input input,
                            Answers answers) {
  return graph::trace(
      [&](Value rows) { with_answers(policy, policy("old_log_probs", reference("log_probs", rows)), answers); },
      {input_for(answers, std::move(input))}, "evaluation");
}

// Puts the measures of plain log-probs behind those of the implicit reward, where they are asked for by their word.
using MeasureRows = std::function<std::vector<Measure>(const Batch& rows)>;
MeasureRows with_plain(const AskedMeasure& asked, MeasureRows implicit, MeasureRows plain) {
  if (!asked.measured) return implicit;
  return [implicit = std::move(implicit), plain = std::move(plain)](const Batch& rows) {
    std::vector<Measure> measures = implicit(rows);
    std::ranges::move(plain(rows), std::back_inserter(measures));
    return measures;
  };
}

// Returns the reward that DPO and KTO give an answer: beta times its log-ratio of policy and reference.
std::function<double(const Batch& rows, int64_t row)> implicit_reward(double beta) {
  return [beta](const Batch& rows, int64_t r) {
    return beta * (answer_log_prob(rows, r) - trainable_sum(rows, batch::kReferenceLogProbs, r));
  };
}

double log_prob_of_token(const Batch& rows, int64_t r) { return answer_log_prob(rows, r) / answer_tokens(rows, r); }

}  // namespace

double answer_log_prob(const Batch& rows, int64_t r) { return trainable_sum(rows, batch::kOldLogProbs, r); }

double answer_tokens(const Batch& rows, int64_t r) {
  double count = 0;
  for (uint8_t trainable : rows.row(batch::kTrainable, r)) count += trainable;
  return count;
}

EvaluationPlan completion_evaluation(Page& page, const AskedMeasure& asked, const graph::ModelHandle& policy,
                                     const graph::ModelHandle* judge) {
  page.reads("evaluation");
  const bool scored = judge != nullptr && asked.options.reward->is_null();
  const int64_t samples = asked.options.samples_per_prompt;
  const graph::ModelHandle rules =
      scored ? *judge : page.rewards(page.unused_name("judge"), page.rules_of(asked), samples > 1);
  EvaluationPlan plan;
  if (!scored) plan.judge = rules.name();
  plan.graph =
      graph::trace([&](Value prompts) { rules("score", policy("generate", prompts)); }, {prompt_input()}, "evaluation");
  plan.measures = [samples, scored](const Batch& rows) { return rollout_measures(rows, samples, scored); };
  return plan;
}

EvaluationPlan loss_evaluation(const graph::ModelHandle& model, Answers answers) {
  EvaluationPlan plan{.measured = MeasureKind::kPerplexity};
  plan.answers = answers == Answers::kOfAskedRows;
  plan.graph = graph::trace([&](Value examples) { with_answers(model, model("old_log_probs", examples), answers); },
                            {input_for(answers, completion_input())}, "evaluation");
  plan.measures = loss_measures;
  plan.row_number = {"loss",
                     [](const Batch& rows, int64_t r) { return -answer_log_prob(rows, r) / answer_tokens(rows, r); }};
  plan.measures_loss = true;
  return plan;
}

EvaluationPlan divergence_evaluation(const graph::ModelHandle& policy, const graph::ModelHandle& teacher,
                                     Answers answers) {
  EvaluationPlan plan = loss_evaluation(policy, answers);
  plan.graph = graph::trace(
      [&](Value rows) {
        with_answers(policy, policy("divergence", teacher("teacher_lists", policy("old_log_probs", rows))), answers);
      },
      {input_for(answers, completion_input())}, "evaluation");
  plan.measures = [](const Batch& rows) {
    std::vector<Measure> measures = loss_measures(rows);
    measures.push_back(divergence_measure(rows));
    return measures;
  };
  return plan;
}

EvaluationPlan pair_score_evaluation(const graph::ModelHandle& model) {
  return pair_evaluation(graph::trace([&](Value pairs) { model("score", pairs); }, {pair_input()}, "evaluation"),
                         {"score", [](const Batch& rows, int64_t r) { return rows.get(batch::kReward, r); }});
}

EvaluationPlan pair_log_prob_evaluation(const graph::ModelHandle& policy, Answers answers) {
  EvaluationPlan plan =
      pair_evaluation(graph::trace([&](Value pairs) { with_answers(policy, policy("old_log_probs", pairs), answers); },
                                   {input_for(answers, pair_input())}, "evaluation"),
                      {"log_prob", log_prob_of_token});
  plan.answers = answers == Answers::kOfAskedRows;
  return plan;
}

EvaluationPlan implicit_reward_evaluation(const AskedMeasure& asked, const graph::ModelHandle& policy,
                                          const graph::ModelHandle& reference, double beta, Answers answers) {
  EvaluationPlan plan =
      pair_evaluation(traced_against(policy, reference, pair_input(), answers),
                      {"implicit_reward", implicit_reward(beta)}, {"rewards/accuracies", "rewards/margins"});
  plan.answers = answers == Answers::kOfAskedRows;
  plan.measures = with_plain(asked, plan.measures, [](const Batch& rows) {
    return pair_measures(rows, {"log_prob", log_prob_of_token}, {});
  });
  return plan;
}

EvaluationPlan marked_log_prob_evaluation(const graph::ModelHandle& policy) {
  EvaluationPlan plan{.measured = MeasureKind::kMarked};
  plan.graph = graph::trace([&](Value rows) { policy("old_log_probs", rows); }, {marked_input()}, "evaluation");
  plan.row_number = {"log_prob", log_prob_of_token};
  plan.measures = [number = *plan.row_number](const Batch& rows) { return marked_row_measures(rows, number, {}); };
  return plan;
}

EvaluationPlan marked_reward_evaluation(const AskedMeasure& asked, const graph::ModelHandle& policy,
                                        const graph::ModelHandle& reference, double beta, Answers answers) {
  EvaluationPlan plan{.measured = MeasureKind::kMarked};
  plan.answers = answers == Answers::kOfAskedRows;
  plan.graph = traced_against(policy, reference, marked_input(), answers);
  plan.row_number = {"implicit_reward", implicit_reward(beta)};
  const auto implicit = [number = *plan.row_number](const Batch& rows) {
    return marked_row_measures(rows, number, {"rewards/accuracies", "rewards/margins"});
  };
  plan.measures = with_plain(asked, implicit, [](const Batch& rows) {
    return marked_row_measures(rows, {"log_prob", log_prob_of_token}, {});
  });
  return plan;
}

EvaluationPlan step_evaluation(const graph::ModelHandle& model) {
  EvaluationPlan plan{.measured = MeasureKind::kSteps};
  plan.graph = graph::trace([&](Value steps) { model("step_scores", steps); }, {step_input()}, "evaluation");
  plan.measures = step_measures;
  plan.row_number = {"lowest_step_score", lowest_step_score};
  plan.measures_loss = true;
  return plan;
}

EvaluationPlan choice_evaluation(const graph::ModelHandle& model) {
  EvaluationPlan plan{.measured = MeasureKind::kChoices};
  plan.graph = graph::trace([&](Value choices) { model("old_log_probs", choices); }, {choice_input()}, "evaluation");
  plan.measures = choice_measures;
  plan.row_number = {"log_prob_sum", answer_log_prob};
  return plan;
}

}  // namespace collimate::recipe
