#include "collimate/rlhf/loss/preference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

// Log-ratios against the reference [R / 2], summed over tokens, and the scores that a divergence makes of them.
struct Pairs {
  Tensor chosen, rejected;              // Σ (lp - ref)
  Tensor chosen_score, rejected_score;  // the same, unless f_divergence is another than reverse_kl
  Tensor chosen_tokens, rejected_tokens;
  Tensor chosen_log_prob;

  Tensor margin() const { return chosen_score - rejected_score; }
};

Tensor every_second(const Tensor& rows, int64_t first) { return rows.slice(0, first, rows.size(0), 2); }

// f'(ratio) of the divergence, without the constants that cancel between chosen and rejected.
Tensor score_of(const Tensor& log_ratio, const DpoOptions& o) {
  const double power = o.alpha - 1;
  if (o.f_divergence == "forward_kl") return -(-log_ratio).exp();
  if (o.f_divergence == "js_divergence") return at::log_sigmoid(log_ratio);
  if (o.f_divergence == "alpha_divergence" && std::abs(power) >= 1e-6)
    return (log_ratio * power).clamp_max(80.0).exp() / power;
  return log_ratio;
}

void check_divergence(const std::string& name) {
  if (name != "reverse_kl" && name != "forward_kl" && name != "js_divergence" && name != "alpha_divergence")
    throw base::InputError(base::expectation(
        "algorithm.f_divergence", "reverse_kl, forward_kl, js_divergence or alpha_divergence", "\"" + name + "\""));
}

Pairs read_pairs(const LossContext& c, const DpoOptions& o) {
  const Tensor log_prob = c.row_sum(c.log_probs());
  const Tensor ratio = log_prob - c.row_sum(c.per_token(batch::kReferenceLogProbs));
  const Tensor score = score_of(ratio, o);
  const Tensor tokens = c.row_tokens().clamp_min(1.0);
  return {every_second(ratio, 0),  every_second(ratio, 1),  every_second(score, 0),   every_second(score, 1),
          every_second(tokens, 0), every_second(tokens, 1), every_second(log_prob, 0)};
}

using PairLoss = std::function<Tensor(const Pairs&, const DpoOptions&)>;

Tensor sigmoid_loss(const Pairs& p, const DpoOptions& o) {
  const Tensor logits = p.margin() * o.beta;
  if (o.label_smoothing == 0.0) return -at::log_sigmoid(logits);
  return -at::log_sigmoid(logits) * (1 - o.label_smoothing) - at::log_sigmoid(-logits) * o.label_smoothing;
}

Tensor robust_loss(const Pairs& p, const DpoOptions& o) {
  const Tensor logits = p.margin() * o.beta;
  const double e = o.label_smoothing;
  return (-at::log_sigmoid(logits) * (1 - e) + at::log_sigmoid(-logits) * e) / (1 - 2 * e);
}

// KL of the model's preference to the labels' (Ji et al. 2024); needs a label_smoothing above 0.
Tensor exo_pair_loss(const Pairs& p, const DpoOptions& o) {
  const Tensor logits = p.margin() * o.beta;
  return logits.sigmoid() * (at::log_sigmoid(logits) - std::log1p(-o.label_smoothing)) +
         (-logits).sigmoid() * (at::log_sigmoid(-logits) - std::log(o.label_smoothing));
}

Tensor hinge_loss(const Pairs& p, const DpoOptions& o) { return (1 - p.margin() * o.beta).relu(); }

// On means over tokens, so that beta does not depend on lengths.
Tensor ipo_loss(const Pairs& p, const DpoOptions& o) {
  return (p.chosen_score / p.chosen_tokens - p.rejected_score / p.rejected_tokens - 1 / (2 * o.beta)).square();
}

Tensor sppo_hard_loss(const Pairs& p, const DpoOptions& o) {
  return (p.chosen_score - 0.5 / o.beta).square() + (p.rejected_score + 0.5 / o.beta).square();
}

Tensor apo_zero_loss(const Pairs& p, const DpoOptions& o) {
  return 1 - (p.chosen * o.beta).sigmoid() + (p.rejected * o.beta).sigmoid();
}

Tensor apo_down_loss(const Pairs& p, const DpoOptions& o) {
  return (p.chosen * o.beta).sigmoid() + 1 - (p.margin() * o.beta).sigmoid();
}

Tensor nca_pair_loss(const Pairs& p, const DpoOptions& o) {
  return -at::log_sigmoid(p.chosen_score * o.beta) - at::log_sigmoid(-p.chosen_score * o.beta) * 0.5 -
         at::log_sigmoid(-p.rejected_score * o.beta) * 0.5;
}

Tensor bco_pair_loss(const Pairs& p, const DpoOptions& o) {
  return -at::log_sigmoid(p.chosen_score * o.beta) - at::log_sigmoid(-p.rejected_score * o.beta);
}

// Blend of the logistic and the exponential loss (Lu et al. 2024).
Tensor discopop_loss(const Pairs& p, const DpoOptions& o) {
  const Tensor logits = p.margin() * o.beta;
  const Tensor blend = (logits / o.discopop_tau).sigmoid();
  return -at::log_sigmoid(logits) * (1 - blend) + (-logits).exp() * blend;
}

const std::vector<std::pair<std::string, PairLoss>>& pair_losses() {
  static const std::vector<std::pair<std::string, PairLoss>> losses = {
      {"sigmoid", sigmoid_loss},   {"hinge", hinge_loss},         {"ipo", ipo_loss},
      {"robust", robust_loss},     {"sppo_hard", sppo_hard_loss}, {"apo_zero", apo_zero_loss},
      {"apo_down", apo_down_loss}, {"nca_pair", nca_pair_loss},   {"bco_pair", bco_pair_loss},
      {"exo_pair", exo_pair_loss}, {"discopop", discopop_loss}};
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

void report(LossContext& c, const Pairs& p, const DpoOptions& o) {
  const Tensor chosen = p.chosen.detach() * o.beta;
  const Tensor rejected = p.rejected.detach() * o.beta;
  c.row_mean("rewards/chosen", chosen);
  c.row_mean("rewards/rejected", rejected);
  c.row_mean("rewards/margins", chosen - rejected);
  c.row_mean("rewards/accuracies", (chosen > rejected).to(at::kFloat));
}

// Negative log-likelihood of the chosen answers: mean over their tokens in this micro-batch, by its share of the pairs.
Tensor chosen_nll(const LossContext& c, const Pairs& p) {
  const double share = 2.0 * static_cast<double>(p.chosen.size(0)) / c.global_rows();
  return -p.chosen_log_prob.sum() / p.chosen_tokens.sum() * share;
}

}  // namespace

Loss dpo_loss(const DpoOptions& options) {
  check_divergence(options.f_divergence);
  if (options.loss_type == "exo_pair" && options.label_smoothing <= 0.0)
    throw base::InputError(base::expectation("algorithm.label_smoothing", "above 0 for exo_pair",
                                             std::to_string(options.label_smoothing), "1e-3"));
  Loss loss{
      .name = "dpo." + options.loss_type, .needs = {.rows_per_unit = 2}, .columns = {batch::kReferenceLogProbs.name}};
  const bool likelihood = options.loss_type == "sft";
  const PairLoss pair = likelihood ? PairLoss() : find_pair_loss(options.loss_type);
  loss.value = [options, pair](LossContext& c) {
    const Pairs pairs = read_pairs(c, options);
    report(c, pairs, options);
    return pair ? pair(pairs, options).sum() / (c.global_rows() / 2) : chosen_nll(c, pairs);
  };
  return loss;
}

Loss weighted_sum(std::vector<Loss> losses, std::vector<double> weights) {
  if (losses.empty() || losses.size() != weights.size())
    throw base::InputError(base::expectation("algorithm.loss_weights", std::to_string(losses.size()) + " numbers",
                                             std::to_string(weights.size())));
  Loss sum = losses[0];
  for (const Loss& loss : losses) {
    sum.needs.log_probs |= loss.needs.log_probs;
    sum.needs.entropy |= loss.needs.entropy;
    sum.needs.values |= loss.needs.values;
    sum.needs.row_scores |= loss.needs.row_scores;
    sum.needs.rows_per_unit = std::max(sum.needs.rows_per_unit, loss.needs.rows_per_unit);
    if (&loss != &losses[0]) sum.name += "+" + loss.name;
    sum.columns.insert(sum.columns.end(), loss.columns.begin(), loss.columns.end());
  }
  sum.value = [losses = std::move(losses), weights = std::move(weights)](LossContext& c) {
    Tensor total = losses[0].value(c) * weights[0];
    for (size_t i = 1; i < losses.size(); ++i) total = total + losses[i].value(c) * weights[i];
    return total;
  };
  return sum;
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
