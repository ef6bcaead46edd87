#include "collimate/recipe/evaluate.h"

#include <utility>

#include "collimate/batch/standard_keys.h"

namespace collimate::recipe {
namespace {

using graph::Value;

// Sum over a row's trainable tokens of a per-token column.
double trainable_sum(const Batch& rows, const Key<float>& key, int64_t r) {
  const auto values = rows.row(key, r);
  const auto trainable = rows.row(batch::kTrainable, r);
  double sum = 0;
  for (size_t t = 0; t < values.size(); ++t) sum += trainable[t] != 0 ? values[t] : 0.F;
  return sum;
}

double trainable_tokens(const Batch& rows, int64_t r) {
  double count = 0;
  for (uint8_t trainable : rows.row(batch::kTrainable, r)) count += trainable;
  return count;
}

// Without the accuracy when `scored` by a model: 1 means nothing on its scale.
NamedValues rollout_metrics(const Batch& rows, bool scored) {
  const auto n = static_cast<double>(rows.rows());
  double reward = 0, right = 0, length = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    reward += rows.get(batch::kReward, r) / n;
    right += (rows.get(batch::kReward, r) >= 1.0F ? 1 : 0) / n;
    length += static_cast<double>(rows.length(batch::kIds.name, r) - rows.get(batch::kPromptTokens, r)) / n;
  }
  NamedValues values = {{"val/reward/mean", reward}};
  if (!scored) values.emplace_back("val/accuracy", right);
  values.emplace_back("val/response_length/mean", length);
  return values;
}

NamedValues loss_metrics(const Batch& rows) {
  double sum = 0, tokens = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    sum -= trainable_sum(rows, batch::kOldLogProbs, r);
    tokens += trainable_tokens(rows, r);
  }
  return {{"val/loss", sum / tokens}};
}

// Part of the pairs (rows 2i, 2i + 1) whose first row measures more, ties counting half, and the mean difference.
NamedValues pair_metrics(const Batch& rows, const RowMeasure& measure) {
  double right = 0, margin = 0;
  const auto pairs = static_cast<double>(rows.rows() / 2);
  for (int64_t r = 0; r + 1 < rows.rows(); r += 2) {
    const double difference = measure.of(rows, r) - measure.of(rows, r + 1);
    right += difference > 0 ? 1 : difference == 0 ? 0.5 : 0;
    margin += difference;
  }
  return {{"val/accuracy", right / pairs}, {"val/margin", margin / pairs}};
}

// Of pairs, by what each row measures.
EvaluationPlan pair_evaluation(graph::Graph graph, RowMeasure measure) {
  EvaluationPlan plan;
  plan.graph = std::move(graph);
  plan.rows = rlhf::RowKind::kPreference;
  plan.metrics = [measure](const Batch& rows) { return pair_metrics(rows, measure); };
  plan.measure = std::move(measure);
  return plan;
}

}  // namespace

std::optional<EvaluationPlan> rollout_evaluation(Page& page, const graph::ModelHandle& policy,
                                                 const graph::ModelHandle* judge) {
  page.reads("evaluation");
  if (page.config().data.eval->is_null()) return std::nullopt;
  const nlohmann::json& own = page.config().evaluation.reward;
  const bool scored = judge != nullptr && own.is_null();
  const graph::ModelHandle rules =
      scored ? *judge : page.rewards("judge", own.is_null() ? page.config().reward.get() : own);
  EvaluationPlan plan;
  if (!scored) plan.judge = rules.name();
  plan.graph =
      graph::trace([&](Value prompts) { rules("score", policy("generate", prompts)); }, {prompt_input()}, "evaluation");
  plan.metrics = [scored](const Batch& rows) { return rollout_metrics(rows, scored); };
  return plan;
}

EvaluationPlan loss_evaluation(const graph::ModelHandle& model) {
  EvaluationPlan plan;
  plan.graph =
      graph::trace([&](Value examples) { model("old_log_probs", examples); }, {completion_input()}, "evaluation");
  plan.rows = rlhf::RowKind::kDemonstration;
  plan.metrics = loss_metrics;
  plan.measure = {"loss", [](const Batch& rows, int64_t r) {
                    return -trainable_sum(rows, batch::kOldLogProbs, r) / trainable_tokens(rows, r);
                  }};
  plan.measures_loss = true;
  return plan;
}

EvaluationPlan pair_score_evaluation(const graph::ModelHandle& model) {
  return pair_evaluation(graph::trace([&](Value pairs) { model("score", pairs); }, {pair_input()}, "evaluation"),
                         {"score", [](const Batch& rows, int64_t r) { return rows.get(batch::kReward, r); }});
}

EvaluationPlan pair_margin_evaluation(const graph::ModelHandle& policy, const graph::ModelHandle* reference) {
  graph::Graph graph = graph::trace(
      [&](Value pairs) { policy("old_log_probs", reference != nullptr ? (*reference)("log_probs", pairs) : pairs); },
      {pair_input()}, "evaluation");
  const auto log_prob = [](const Batch& rows, int64_t r) {
    return trainable_sum(rows, batch::kOldLogProbs, r) / trainable_tokens(rows, r);
  };
  const auto log_ratio = [](const Batch& rows, int64_t r) {
    return trainable_sum(rows, batch::kOldLogProbs, r) - trainable_sum(rows, batch::kReferenceLogProbs, r);
  };
  return pair_evaluation(std::move(graph),
                         reference != nullptr ? RowMeasure{"log_ratio", log_ratio} : RowMeasure{"log_prob", log_prob});
}

}  // namespace collimate::recipe
