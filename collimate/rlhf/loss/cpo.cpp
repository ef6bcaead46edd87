#include <ATen/TensorOperators.h>

#include "collimate/base/error.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/loss/pairs.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

struct Cpo {
  std::string type;
  double beta, smoothing, gamma, alpha;

  bool means() const { return type == "cpo_ipo" || type == "simpo"; }
  Tensor pair_loss(const Tensor& margin) const {
    if (type == "cpo_hinge") return (1 - margin * beta).relu();
    if (type == "cpo_ipo") return (margin - 1 / (2 * beta)).square();
    return smoothed_logistic(type == "simpo" ? margin * beta - gamma : margin * beta, smoothing);
  }
  Tensor value(LossContext& c) const {
    Tensor answers = c.row_sum(c.log_probs());
    if (means()) answers = answers / c.row_tokens().clamp_min(1.0);
    const Tensor chosen = every_second(answers, 0);
    const Tensor rejected = every_second(answers, 1);
    report_pairs(c, chosen.detach() * beta, rejected.detach() * beta);
    const Tensor loss = pair_loss(chosen - rejected).sum() / (c.global_rows() / 2);
    return alpha != 0.0 ? loss + chosen_likelihood_loss(c) * alpha : loss;
  }
};

Loss make_cpo(const std::string& type, const LossSetting& setting) {
  const AlgorithmOptions& o = setting.options;
  const Cpo cpo{type, o.beta->value_or(kPairBeta), o.label_smoothing, o.simpo_gamma, o.cpo_alpha};
  if (cpo.beta <= 0.0)
    throw base::InputError(base::expectation("algorithm.beta", "above 0 for " + type, std::to_string(cpo.beta)));
  return {.name = type, .needs = {.rows_per_unit = 2}, .value = [cpo](LossContext& c) { return cpo.value(c); }};
}

std::vector<std::string> cpo_options(const std::string& type) {
  std::vector<std::string> names = {"beta", "cpo_alpha"};
  if (type == "cpo" || type == "simpo") names.emplace_back("label_smoothing");
  if (type == "simpo") names.emplace_back("simpo_gamma");
  return names;
}

}  // namespace

// These losses are CPO (Xu et al. 2024; cpo, and cpo_hinge and cpo_ipo as TRL has them) and SimPO (Meng et al. 2024;
// simpo), plus cpo_alpha · NLL of the chosen answers, as in TRL's CPOTrainer, whose loss_type calls the first three
// sigmoid, hinge and ipo. They read no reference. cpo and cpo_hinge compare sums of log-probs, cpo_ipo and simpo means
// over tokens. simpo is -log σ(beta (c - r) - simpo_gamma) with the means c of the chosen and r of the rejected
// answer.
LossEntry cpo_losses() {
  return {"pairs",
          {"cpo", "cpo_hinge", "cpo_ipo", "simpo"},
          cpo_options,
          make_cpo,
          {{"cpo",
            "CPO: the logistic loss of the two answers' log-probs, without a reference, plus cpo_alpha times the "
            "negative log-likelihood of the chosen one."},
           {"cpo_hinge", "CPO with the hinge loss in the place of the logistic one."},
           {"cpo_ipo", "CPO with IPO's squared loss of the answers' mean log-probs."},
           {"simpo",
            "SimPO: the logistic loss of the answers' mean log-probs, which are to differ by the margin "
            "simpo_gamma; without a reference."}}};
}

}  // namespace collimate::rlhf
