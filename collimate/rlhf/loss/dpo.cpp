#include "collimate/rlhf/loss/dpo.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/sort.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/rlhf/loss/pairs.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;

// The options as numbers, read once.
struct Dpo {
  double beta, smoothing, alpha, tau;
  std::string divergence;
  std::optional<double> ld_alpha;
};

// All [R / 2]. Log-ratios against the reference, summed over tokens, and the scores that a divergence makes of them.
struct Pairs {
  Tensor chosen, rejected;              // Σ (lp - ref)
  Tensor chosen_score, rejected_score;  // the same, unless the divergence is another than reverse_kl
  Tensor chosen_tokens, rejected_tokens;
  Tensor policy_margin, reference_margin;  // Σ lp of the chosen less that of the rejected answer

  Tensor margin() const { return chosen_score - rejected_score; }
  Tensor mean_margin() const { return chosen_score / chosen_tokens - rejected_score / rejected_tokens; }
};

// f'(ratio) of the divergence (Wang et al. 2024).
Tensor score_of(const Tensor& log_ratio, const Dpo& o) {
  const double power = o.alpha - 1;
  if (o.divergence == "forward_kl") return 1 - (-log_ratio).exp();
  if (o.divergence == "js_divergence") return at::log_sigmoid(log_ratio) + std::log(2.0);
  if (o.divergence == "alpha_divergence" && std::abs(power) >= 1e-6)
    return ((log_ratio * power).clamp_max(80.0).exp() - 1) / power;
  return log_ratio;
}

// [M] LD-DPO (Liu et al. 2024): 1 up to the length of the pair's shorter answer, ld_alpha beyond.
Tensor length_weights(const LossContext& c, double ld_alpha) {
  const Tensor counts = c.row_tokens();
  const float* tokens = counts.const_data_ptr<float>();
  Tensor weights = at::empty({c.log_probs().size(0)}, at::kFloat);
  float* to = weights.data_ptr<float>();
  for (int64_t r = 0; r < counts.size(0); ++r) {
    const float shared = std::min(tokens[r], tokens[r ^ 1]);
    for (int64_t t = 0; t < static_cast<int64_t>(tokens[r]); ++t)
      *to++ = static_cast<float>(t) < shared ? 1.F : static_cast<float>(ld_alpha);
  }
  return weights;
}

Pairs read_pairs(const LossContext& c, const Dpo& o) {
  Tensor log_probs = c.log_probs();
  Tensor reference = c.per_token(batch::kReferenceLogProbs);
  if (o.ld_alpha) {
    const Tensor weights = length_weights(c, *o.ld_alpha);
    log_probs = log_probs * weights;
    reference = reference * weights;
  }
  const Tensor policy_sum = c.row_sum(log_probs);
  const Tensor reference_sum = c.row_sum(reference);
  const Tensor ratio = policy_sum - reference_sum;
  const Tensor score = score_of(ratio, o);
  const Tensor tokens = c.row_tokens().clamp_min(1.0);
  return {every_second(ratio, 0),
          every_second(ratio, 1),
          every_second(score, 0),
          every_second(score, 1),
          every_second(tokens, 0),
          every_second(tokens, 1),
          every_second(policy_sum, 0) - every_second(policy_sum, 1),
          every_second(reference_sum, 0) - every_second(reference_sum, 1)};
}

// Loss of each pair [R / 2].
using PairLoss = Tensor (*)(const Pairs&, const Dpo&);

Tensor sigmoid(const Pairs& p, const Dpo& o) { return smoothed_logistic(p.margin() * o.beta, o.smoothing); }

// On means over tokens, so that beta does not depend on lengths.
Tensor sigmoid_norm(const Pairs& p, const Dpo& o) { return -at::log_sigmoid(p.mean_margin() * o.beta); }

Tensor hinge(const Pairs& p, const Dpo& o) { return (1 - p.margin() * o.beta).relu(); }

Tensor ipo(const Pairs& p, const Dpo& o) { return (p.mean_margin() - 1 / (2 * o.beta)).square(); }

// Chowdhury et al. 2024.
Tensor robust(const Pairs& p, const Dpo& o) {
  const Tensor logits = p.margin() * o.beta;
  const double e = o.smoothing;
  return (-at::log_sigmoid(logits) * (1 - e) + at::log_sigmoid(-logits) * e) / (1 - 2 * e);
}

// KL of the model's preference to the labels' (Ji et al. 2024).
Tensor exo_pair(const Pairs& p, const Dpo& o) {
  const Tensor logits = p.margin() * o.beta;
  return logits.sigmoid() * (at::log_sigmoid(logits) - std::log1p(-o.smoothing)) +
         (-logits).sigmoid() * (at::log_sigmoid(-logits) - std::log(o.smoothing));
}

Tensor sppo_hard(const Pairs& p, const Dpo& o) {
  return (p.chosen - 0.5 / o.beta).square() + (p.rejected + 0.5 / o.beta).square();
}

Tensor apo_zero(const Pairs& p, const Dpo& o) {
  return 1 - (p.chosen * o.beta).sigmoid() + (p.rejected * o.beta).sigmoid();
}

Tensor apo_down(const Pairs& p, const Dpo& o) {
  return (p.chosen * o.beta).sigmoid() + 1 - ((p.chosen - p.rejected) * o.beta).sigmoid();
}

Tensor nca_pair(const Pairs& p, const Dpo& o) {
  return -at::log_sigmoid(p.chosen * o.beta) - at::log_sigmoid(-p.chosen * o.beta) * 0.5 -
         at::log_sigmoid(-p.rejected * o.beta) * 0.5;
}

Tensor bco_pair(const Pairs& p, const Dpo& o) {
  return -at::log_sigmoid(p.chosen * o.beta) - at::log_sigmoid(-p.rejected * o.beta);
}

// Blend of the logistic and the exponential loss (Lu et al. 2024).
Tensor discopop(const Pairs& p, const Dpo& o) {
  const Tensor logits = p.margin() * o.beta;
  const Tensor blend = (logits / o.tau).sigmoid();
  return -at::log_sigmoid(logits) * (1 - blend) + (-logits).exp() * blend;
}

// Optimal transport (Melnyk et al. 2024): quantiles are compared, not pairs.
Tensor sorted(const Tensor& values) { return std::get<0>(at::sort(values)); }

Tensor aot(const Pairs& p, const Dpo& o) {
  return smoothed_logistic((sorted(p.policy_margin) - sorted(p.reference_margin)) * o.beta, o.smoothing);
}

Tensor aot_unpaired(const Pairs& p, const Dpo& o) {
  return smoothed_logistic((sorted(p.chosen) - sorted(p.rejected)) * o.beta, o.smoothing);
}

struct Named {
  const char* name;
  PairLoss loss;
  bool scored = false;    // reads the scores that f_divergence_type makes
  bool smoothed = false;  // reads label_smoothing
};

constexpr Named kLosses[] = {{"sigmoid", sigmoid, true, true},
                             {"hinge", hinge, true},
                             {"ipo", ipo, true},
                             {"robust", robust, true, true},
                             {"exo_pair", exo_pair, true, true},
                             {"nca_pair", nca_pair},
                             {"bco_pair", bco_pair},
                             {"sppo_hard", sppo_hard},
                             {"aot", aot, false, true},
                             {"aot_unpaired", aot_unpaired, false, true},
                             {"apo_zero", apo_zero},
                             {"apo_down", apo_down},
                             {"discopop", discopop, true},
                             {"sigmoid_norm", sigmoid_norm, true},
                             {"sft", nullptr}};  // likelihood of the chosen answers

Tensor evaluate(LossContext& c, const Dpo& options, PairLoss pair) {
  const Pairs pairs = read_pairs(c, options);
  report_pairs(c, pairs.chosen.detach() * options.beta, pairs.rejected.detach() * options.beta);
  return pair != nullptr ? pair(pairs, options).sum() / (c.global_rows() / 2) : chosen_likelihood_loss(c);
}

void check(const Named& named, const Dpo& o, size_t losses) {
  const std::string type = named.name;
  if (o.beta <= 0.0)
    throw base::InputError(base::expectation("algorithm.beta", "above 0 for " + type, fmt::format("{}", o.beta)));
  if (type == "exo_pair" && o.smoothing <= 0.0)
    throw base::InputError(base::expectation("algorithm.label_smoothing", "above 0 for exo_pair", "0", "1e-3"));
  if (losses > 1) return;  // another one of them may read what this one does not
  if (!named.smoothed && o.smoothing != 0.0)
    throw base::InputError(base::expectation("algorithm.label_smoothing", "0 with " + type + ", which has none",
                                             fmt::format("{}", o.smoothing)));
  if (!named.scored && o.divergence != "reverse_kl")
    throw base::InputError(base::expectation("algorithm.f_divergence_type",
                                             "reverse_kl with " + type + ", which reads log-ratios", o.divergence));
}

Loss make(const std::string& type, const LossSetting& setting) {
  const AlgorithmOptions& o = setting.options;
  const Dpo dpo{o.beta->value_or(0.1), o.label_smoothing,   o.f_alpha_divergence_coef,
                o.discopop_tau,        o.f_divergence_type, o.ld_alpha};
  const Named& named =
      *std::find_if(std::begin(kLosses), std::end(kLosses), [&](const Named& one) { return one.name == type; });
  check(named, dpo, o.loss_type->size());
  return {.name = type,
          .needs = {.rows_per_unit = 2},
          .columns = {batch::kReferenceLogProbs.name},
          .value = [dpo, pair = named.loss](LossContext& c) { return evaluate(c, dpo, pair); }};
}

}  // namespace

LossEntry dpo_losses() {
  LossEntry entry{
      "pairs",
      {},
      {"beta", "label_smoothing", "f_divergence_type", "f_alpha_divergence_coef", "ld_alpha", "discopop_tau"},
      make};
  for (const Named& named : kLosses) entry.types.emplace_back(named.name);
  return entry;
}

}  // namespace collimate::rlhf
