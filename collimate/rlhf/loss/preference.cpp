#include "collimate/rlhf/loss/preference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include <functional>
#include <utility>
#include <vector>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

// Log-ratios of chosen and rejected against the reference [R / 2], as sums over tokens and as means.
struct LogRatios {
  Tensor chosen, rejected;            // Σ (lp - ref)
  Tensor chosen_mean, rejected_mean;  // the same per token
  Tensor chosen_log_prob, chosen_tokens;
};

Tensor every_second(const Tensor& rows, int64_t first) { return rows.slice(0, first, rows.size(0), 2); }

LogRatios log_ratios(const LossContext& c) {
  const Tensor ratio = c.row_sum(c.log_probs()) - c.row_sum(c.per_token(batch::kReferenceLogProbs));
  const Tensor mean = ratio / c.row_tokens();
  return {every_second(ratio, 0),
          every_second(ratio, 1),
          every_second(mean, 0),
          every_second(mean, 1),
          every_second(c.row_sum(c.log_probs()), 0),
          every_second(c.row_tokens(), 0)};
}

using PairLoss = std::function<Tensor(const LogRatios&, const DpoOptions&)>;

Tensor sigmoid_loss(const LogRatios& r, const DpoOptions& o) {
  const Tensor logits = (r.chosen - r.rejected) * o.beta;
  if (o.label_smoothing == 0.0) return -at::log_sigmoid(logits);
  return -at::log_sigmoid(logits) * (1 - o.label_smoothing) - at::log_sigmoid(-logits) * o.label_smoothing;
}

Tensor robust_loss(const LogRatios& r, const DpoOptions& o) {
  const Tensor logits = (r.chosen - r.rejected) * o.beta;
  const double e = o.label_smoothing;
  return (-at::log_sigmoid(logits) * (1 - e) + at::log_sigmoid(-logits) * e) / (1 - 2 * e);
}

Tensor hinge_loss(const LogRatios& r, const DpoOptions& o) { return (1 - (r.chosen - r.rejected) * o.beta).relu(); }

Tensor ipo_loss(const LogRatios& r, const DpoOptions& o) {
  return (r.chosen_mean - r.rejected_mean - 1 / (2 * o.beta)).square();
}

Tensor sppo_hard_loss(const LogRatios& r, const DpoOptions& o) {
  return (r.chosen - 0.5 / o.beta).square() + (r.rejected + 0.5 / o.beta).square();
}

Tensor apo_zero_loss(const LogRatios& r, const DpoOptions& o) {
  return 1 - (r.chosen * o.beta).sigmoid() + (r.rejected * o.beta).sigmoid();
}

Tensor apo_down_loss(const LogRatios& r, const DpoOptions& o) {
  return (r.chosen * o.beta).sigmoid() + 1 - ((r.chosen - r.rejected) * o.beta).sigmoid();
}

Tensor nca_pair_loss(const LogRatios& r, const DpoOptions& o) {
  return -at::log_sigmoid(r.chosen * o.beta) - at::log_sigmoid(-r.chosen * o.beta) * 0.5 -
         at::log_sigmoid(-r.rejected * o.beta) * 0.5;
}

const std::vector<std::pair<std::string, PairLoss>>& pair_losses() {
  static const std::vector<std::pair<std::string, PairLoss>> losses = {
      {"sigmoid", sigmoid_loss},   {"hinge", hinge_loss},         {"ipo", ipo_loss},
      {"robust", robust_loss},     {"sppo_hard", sppo_hard_loss}, {"apo_zero", apo_zero_loss},
      {"apo_down", apo_down_loss}, {"nca_pair", nca_pair_loss}};
  return losses;
}

PairLoss find_pair_loss(const std::string& name) {
  std::string known = "sft";
  for (const auto& [key, loss] : pair_losses()) {
    if (key == name) return loss;
    known += ", " + key;
  }
  throw base::InputError(base::expectation("algorithm.loss_type", "one of " + known, "\"" + name + "\""));
}

void report(LossContext& c, const LogRatios& r, const DpoOptions& o) {
  const Tensor chosen = r.chosen.detach() * o.beta;
  const Tensor rejected = r.rejected.detach() * o.beta;
  c.row_mean("rewards/chosen", chosen);
  c.row_mean("rewards/rejected", rejected);
  c.row_mean("rewards/margins", chosen - rejected);
  c.row_mean("rewards/accuracies", (chosen > rejected).to(at::kFloat));
}

}  // namespace

Loss dpo_loss(const DpoOptions& options) {
  Loss loss{
      .name = "dpo." + options.loss_type, .needs = {.rows_per_unit = 2}, .columns = {batch::kReferenceLogProbs.name}};
  if (options.loss_type == "sft") {
    // The negative log-likelihood of the chosen answers, by tokens; its count is half of no global number, so it is
    // taken from the pairs: mean over the chosen tokens of this update.
    loss.value = [options](LossContext& c) {
      const LogRatios r = log_ratios(c);
      report(c, r, options);
      return -r.chosen_log_prob.sum() / r.chosen_tokens.sum() * (2 * r.chosen.size(0) / c.global_rows());
    };
    return loss;
  }
  const PairLoss pair = find_pair_loss(options.loss_type);
  loss.value = [options, pair](LossContext& c) {
    const LogRatios r = log_ratios(c);
    report(c, r, options);
    return pair(r, options).sum() / (c.global_rows() / 2);
  };
  return loss;
}

Loss reward_loss(const RewardLossOptions& options) {
  return {.name = "reward",
          .needs = {.log_probs = false, .row_scores = true, .rows_per_unit = 2},
          .value = [options](LossContext& c) {
            const Tensor chosen = every_second(c.row_scores(), 0);
            const Tensor rejected = every_second(c.row_scores(), 1);
            Tensor difference = chosen - rejected;
            if (c.rows().has(kMargin.name)) difference = difference - every_second(c.per_row(kMargin), 0);
            Tensor loss = -at::log_sigmoid(difference);
            if (options.center_rewards_coefficient != 0.0)
              loss = loss + (chosen + rejected).square() * options.center_rewards_coefficient;
            c.row_mean("reward/accuracy", (chosen > rejected).to(at::kFloat));
            c.row_mean("reward/margin", chosen - rejected);
            c.row_mean("reward/mean", c.row_scores());
            return loss.sum() / (c.global_rows() / 2);
          }};
}

}  // namespace collimate::rlhf
