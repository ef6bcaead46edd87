#include <ATen/TensorOperators.h>

#include <cmath>
#include <limits>

#include "collimate/base/error.h"
#include "collimate/rlhf/loss/policy_terms.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;
using Options = AlgorithmOptions;
using Terms = PolicyTerms;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Limits ratios to at most `delta`, if that is set.
Tensor bounded(const Tensor& ratio, const Options& o) {
  return o.delta->has_value() ? ratio.clamp_max(**o.delta) : ratio;
}

Tensor clipped(const Terms& t, const Options& o) {
  const ClipRange range = clip_range(o);
  return -(bounded(t.ratio, o) * t.advantages).minimum(t.ratio.clamp(range.low, range.high) * t.advantages);
}

// Returns the range beyond which tokens count as clipped. As in TRL `delta` limits the ratio before: no ratio counts as
// above a bound that `delta` does not exceed, and every ratio counts as below a bound that exceeds `delta`.
ClipRange clips_below_delta(const Options& o) {
  ClipRange range = clip_range(o);
  if (!o.delta->has_value()) return range;
  const auto delta = static_cast<float>(**o.delta);
  if (delta < static_cast<float>(range.low)) range.low = kNever;
  if (delta <= static_cast<float>(range.high)) range.high = kNever;
  return range;
}

double cispo_cap(const Options& o) { return o.epsilon_high->value_or(o.epsilon); }
// Tokens count as clipped above the cap alone, as in TRL.
ClipRange clips_above_cap(const Options& o) { return {-kNever, cispo_cap(o)}; }

Tensor cispo(const Terms& t, const Options& o) {
  return -t.ratio.detach().clamp_max(cispo_cap(o)) * t.advantages * t.log_probs;
}

Tensor sapo(const Terms& t, const Options& o) {
  const auto gate = [&](double temperature) { return ((t.ratio - 1) * temperature).sigmoid() * (4 / temperature); };
  return -gate(o.sapo_temperature_pos).where(t.advantages > 0, gate(o.sapo_temperature_neg)) * t.advantages;
}

// The sequence's ratio is the product of its tokens' ratios, clamped so that the exponentials stay finite.
Tensor vespo(const Terms& t, const Options& o) {
  const Tensor sequence = t.context.row_sum(t.token_log_ratio.detach().clamp(-20.0, 20.0));
  const Tensor log_weight = t.context.to_tokens(sequence.clamp(std::log(1e-8), 20.0));
  const auto phi = [&](double k, double lambda) { return (log_weight * k - (log_weight.exp() - 1) * lambda).exp(); };
  const Tensor weight =
      phi(o.vespo_k_pos, o.vespo_lambda_pos).where(t.advantages >= 0, phi(o.vespo_k_neg, o.vespo_lambda_neg));
  return -weight * t.advantages * t.log_probs;
}

Tensor length_normalized_sum(const Tensor& tokens, const LossContext& c, const LossSetting& s) {
  return tokens.sum() / (c.global_rows() * static_cast<double>(s.completion_tokens));
}

Tensor sequence_sum(const Tensor& tokens, const LossContext& c, const LossSetting&) {
  return tokens.sum() / c.global_rows();
}

void needs_a_limit(const std::string& name, const LossSetting& setting) {
  if (setting.completion_tokens > 0) return;
  throw base::InputError(
      base::expectation("algorithm.loss_type", "a completion limit for " + name, "none", "rollout.completion_tokens"));
}

}  // namespace

// Names, formulas and constants are those of TRL 1.16's GRPOTrainer and, for ppo (mean over the update's tokens), of
// PPOTrainer and verl.
LossEntry policy_losses() {
  const Surrogate clip{clipped, clips_below_delta, {"epsilon", "epsilon_high", "delta"}};
  const Surrogate cap{cispo, clips_above_cap, {"epsilon", "epsilon_high"}};
  // These two have no clip: epsilon and epsilon_high bound only which tokens count as clipped.
  const Surrogate gate{sapo, clip_range, {"epsilon", "epsilon_high", "sapo_temperature_pos", "sapo_temperature_neg"}};
  const Surrogate sequence_weight{
      vespo,
      clip_range,
      {"epsilon", "epsilon_high", "vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"}};
  return policy_entry(
      {{"grpo", "The clipped loss of each token, as a mean over a sample's tokens and then over the samples.", clip,
        sequence_mean},
       {"bnpo", "The clipped loss as a mean over all tokens of an update.", clip, update_token_mean},
       {"dr_grpo",
        "Dr. GRPO: the clipped loss as a sum over the tokens, divided by the longest length that a completion "
        "may have, so that length has no influence.",
        clip, length_normalized_sum, needs_a_limit},
       {"dapo",
        "DAPO: the clipped loss as a mean over all tokens of an iteration or of an update, as token_normalizer "
        "says.",
        clip, normalized_token_sum},
       {"cispo", "CISPO: every token is trained; its weight is the probability ratio, which epsilon_high caps.", cap,
        normalized_token_sum},
       {"sapo", "SAPO: a smooth gate takes the place of the clip, with a temperature for each sign of the advantage.",
        gate, sequence_mean},
       {"luspo", "LUSPO: the clipped loss as a sum over a sample's tokens and a mean over the samples.", clip,
        sequence_sum},
       {"vespo", "VESPO: every token is weighed by a smooth function of its sample's probability ratio.",
        sequence_weight, normalized_token_sum},
       {"ppo", "PPO: the clipped loss as a mean over all tokens of an update.", clip, update_token_mean}});
}

}  // namespace collimate::rlhf
