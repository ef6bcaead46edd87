#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/loss/pairs.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

// Returns log(1 - e^x) for x < 0.
Tensor log1mexp(const Tensor& x) { return (-x.expm1()).log(); }

Tensor odds_ratio_loss(LossContext& c, double beta) {
  const Tensor completion = c.per_token(kCompletion);
  const Tensor means = c.row_sum(c.log_probs() * completion) / c.row_sum(completion).clamp_min(1.0);
  const Tensor chosen = every_second(means, 0);
  const Tensor rejected = every_second(means, 1);
  const Tensor odds = (chosen - rejected) - (log1mexp(chosen) - log1mexp(rejected));
  const Tensor ratio = at::log_sigmoid(odds);
  report_pairs(c, chosen.detach() * beta, rejected.detach() * beta);
  c.row_mean("log_odds_ratio", ratio);
  c.row_mean("log_odds_chosen", odds);
  return chosen_likelihood_loss(c) - ratio.sum() * (beta / (c.global_rows() / 2));
}

Loss make_orpo(const std::string&, const LossSetting& setting) {
  return {
      .name = "orpo",
      .needs = {.rows_per_unit = 2},
      .columns = {kCompletion.name},
      .value = [beta = setting.options.beta->value_or(kPairBeta)](LossContext& c) { return odds_ratio_loss(c, beta); }};
}

}  // namespace

// ORPO (Hong et al. 2024), as in TRL's ORPOTrainer, is the NLL of the chosen prompt and answer, less beta · log σ(log
// odds ratio of the answers' mean log-probs). It reads no reference. `trainable` marks the prompt too; the column
// `completion` is 1 at the answers.
LossEntry orpo_losses() {
  return {"pairs",
          {"orpo"},
          {"beta"},
          make_orpo,
          {{"orpo",
            "ORPO: SFT on the chosen answers, plus beta times a loss of the odds by which the rejected answers "
            "are less likely; without a reference."}}};
}

}  // namespace collimate::rlhf
