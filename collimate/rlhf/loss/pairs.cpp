#include "collimate/rlhf/loss/pairs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

namespace collimate::rlhf {

using at::Tensor;

Tensor every_second(const Tensor& rows, int64_t first) { return rows.slice(0, first, rows.size(0), 2); }

Tensor smoothed_logistic(const Tensor& logits, double smoothing) {
  if (smoothing == 0.0) return -at::log_sigmoid(logits);
  return -at::log_sigmoid(logits) * (1 - smoothing) - at::log_sigmoid(-logits) * smoothing;
}

Tensor chosen_likelihood_loss(const LossContext& c) {
  return every_second(c.row_sum(c.log_probs()), 0).sum() / -c.global_chosen_tokens();
}

void report_pairs(LossContext& c, const Tensor& chosen, const Tensor& rejected) {
  c.row_mean("rewards/chosen", chosen);
  c.row_mean("rewards/rejected", rejected);
  c.row_mean("rewards/margins", (chosen - rejected).detach());
  c.row_mean("rewards/accuracies", (chosen > rejected).to(at::kFloat));
}

void report_scores(LossContext& c) {
  const Tensor chosen = every_second(c.row_scores(), 0), rejected = every_second(c.row_scores(), 1);
  c.row_mean("reward/accuracy", (chosen > rejected).to(at::kFloat));
  c.row_mean("reward/margin", chosen - rejected);
  c.row_mean("reward/mean", c.row_scores());
}

}  // namespace collimate::rlhf
