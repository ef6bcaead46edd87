#include "collimate/rlhf/loss/reference_free.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

Tensor every_second(const Tensor& rows, int64_t first) { return rows.slice(0, first, rows.size(0), 2); }

// Log-probs of chosen and rejected answers [R / 2], as sums or as means over their tokens.
struct Answers {
  Tensor chosen, rejected;
};

Answers answers(const LossContext& c, bool means) {
  const Tensor completion = c.per_token(kCompletion);
  Tensor sums = c.row_sum(c.log_probs() * completion);
  if (means) sums = sums / c.row_sum(completion).clamp_min(1.0);
  return {every_second(sums, 0), every_second(sums, 1)};
}

// Mean over all trainable tokens of the chosen rows of this micro-batch, by its share of the pairs.
Tensor chosen_nll(const LossContext& c) {
  const Tensor sums = every_second(c.row_sum(c.log_probs()), 0);
  const double share = 2.0 * static_cast<double>(sums.size(0)) / c.global_rows();
  return -sums.sum() / every_second(c.row_tokens(), 0).sum() * share;
}

void report(LossContext& c, const Answers& a, double beta) {
  const Tensor chosen = a.chosen.detach() * beta;
  const Tensor rejected = a.rejected.detach() * beta;
  c.row_mean("rewards/chosen", chosen);
  c.row_mean("rewards/rejected", rejected);
  c.row_mean("rewards/margins", chosen - rejected);
  c.row_mean("rewards/accuracies", (chosen > rejected).to(at::kFloat));
}

// log(1 - e^x) of x < 0.
Tensor log1mexp(const Tensor& x) { return (-x.expm1()).log(); }

Tensor smoothed(const Tensor& logits, double smoothing) {
  return -at::log_sigmoid(logits) * (1 - smoothing) - at::log_sigmoid(-logits) * smoothing;
}

Tensor pair_loss(const Answers& a, const CpoOptions& o) {
  const Tensor margin = a.chosen - a.rejected;
  if (o.loss_type == "sigmoid") return smoothed(margin * o.beta, o.label_smoothing);
  if (o.loss_type == "simpo") return smoothed((margin - o.simpo_gamma / o.beta) * o.beta, o.label_smoothing);
  if (o.loss_type == "hinge") return (1 - margin * o.beta).relu();
  return (margin - 1 / (2 * o.beta)).square();
}

Loss pair_of_rows(const std::string& name) {
  return {.name = name, .needs = {.rows_per_unit = 2}, .columns = {kCompletion.name}};
}

}  // namespace

Loss orpo_loss(const OrpoOptions& options) {
  Loss loss = pair_of_rows("orpo");
  loss.value = [options](LossContext& c) {
    const Answers a = answers(c, true);
    const Tensor odds = (a.chosen - a.rejected) - (log1mexp(a.chosen) - log1mexp(a.rejected));
    const Tensor ratio = at::log_sigmoid(odds);
    report(c, a, options.beta);
    c.row_mean("log_odds_ratio", ratio);
    c.row_mean("log_odds_chosen", odds);
    return chosen_nll(c) - ratio.sum() * (options.beta / (c.global_rows() / 2));
  };
  return loss;
}

Loss cpo_loss(const CpoOptions& options) {
  const std::string& type = options.loss_type;
  const bool means = type == "ipo" || type == "simpo";
  if (!means && type != "sigmoid" && type != "hinge")
    throw base::InputError(
        base::expectation("algorithm.loss_type", "one of sigmoid, hinge, ipo, simpo", "\"" + type + "\""));
  Loss loss = pair_of_rows("cpo." + type);
  loss.value = [options, means](LossContext& c) {
    const Answers a = answers(c, means);
    report(c, a, options.beta);
    Tensor value = pair_loss(a, options).sum() / (c.global_rows() / 2);
    if (options.cpo_alpha != 0.0) value = value + chosen_nll(c) * options.cpo_alpha;
    return value;
  };
  return loss;
}

}  // namespace collimate::rlhf
