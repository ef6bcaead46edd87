#include "collimate/rlhf/loss/policy.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;
using Options = AlgorithmOptions;

// A surrogate sees these terms, all [M].
struct Terms {
  const LossContext& context;
  Tensor ratio, token_log_ratio, log_probs, advantages;
};
// Per-token loss [M].
using Surrogate = Tensor (*)(const Terms&, const Options&);
// Scalar from the per-token loss.
using Aggregate = Tensor (*)(const Tensor& tokens, const LossContext&, const LossSetting&);

double upper_epsilon(const Options& o) { return o.epsilon_high->value_or(o.epsilon); }

// Below `delta`, where it is set.
Tensor bounded(const Tensor& ratio, const Options& o) {
  return o.delta->has_value() ? ratio.clamp_max(**o.delta) : ratio;
}

Tensor clipped(const Terms& t, const Options& o) {
  return -(bounded(t.ratio, o) * t.advantages)
              .minimum(t.ratio.clamp(1 - o.epsilon, 1 + upper_epsilon(o)) * t.advantages);
}

Tensor cispo(const Terms& t, const Options& o) {
  return -t.ratio.detach().clamp_max(upper_epsilon(o)) * t.advantages * t.log_probs;
}

Tensor sapo(const Terms& t, const Options& o) {
  const auto gate = [&](double temperature) { return ((t.ratio - 1) * temperature).sigmoid() * (4 / temperature); };
  return -gate(o.sapo_temperature_pos).where(t.advantages > 0, gate(o.sapo_temperature_neg)) * t.advantages;
}

// The sequence's ratio is the product of its tokens', clamped so that the exponentials stay finite.
Tensor vespo(const Terms& t, const Options& o) {
  const Tensor sequence = t.context.row_sum(t.token_log_ratio.detach().clamp(-20.0, 20.0));
  const Tensor log_weight = t.context.to_tokens(sequence.clamp(std::log(1e-8), 20.0));
  const auto phi = [&](double k, double lambda) { return (log_weight * k - (log_weight.exp() - 1) * lambda).exp(); };
  const Tensor weight =
      phi(o.vespo_k_pos, o.vespo_lambda_pos).where(t.advantages >= 0, phi(o.vespo_k_neg, o.vespo_lambda_neg));
  return -weight * t.advantages * t.log_probs;
}

Tensor sequence_mean(const Tensor& tokens, const LossContext& c, const LossSetting&) {
  return (c.row_sum(tokens) / c.row_tokens().clamp_min(1.0)).sum() / c.global_rows();
}

Tensor update_token_mean(const Tensor& tokens, const LossContext& c, const LossSetting&) {
  return tokens.sum() / c.global_tokens();
}

Tensor normalized_token_sum(const Tensor& tokens, const LossContext& c, const LossSetting& s) {
  return tokens.sum() / (s.token_normalizer > 0 ? s.token_normalizer : c.global_tokens());
}

Tensor length_normalized_sum(const Tensor& tokens, const LossContext& c, const LossSetting& s) {
  return tokens.sum() / (c.global_rows() * static_cast<double>(s.completion_tokens));
}

Tensor sequence_sum(const Tensor& tokens, const LossContext& c, const LossSetting&) {
  return tokens.sum() / c.global_rows();
}

struct Preset {
  const char* name;
  Surrogate surrogate;
  Aggregate aggregate;
};

constexpr Preset kPresets[] = {{"grpo", clipped, sequence_mean},
                               {"bnpo", clipped, update_token_mean},
                               {"dr_grpo", clipped, length_normalized_sum},
                               {"dapo", clipped, normalized_token_sum},
                               {"cispo", cispo, normalized_token_sum},
                               {"sapo", sapo, sequence_mean},
                               {"luspo", clipped, sequence_sum},
                               {"vespo", vespo, normalized_token_sum},
                               {"ppo", clipped, update_token_mean}};

const Preset& preset_of(const std::string& type) {
  return *std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& one) { return one.name == type; });
}

// log of the importance ratio per token: of the token, of the sequence (mean over its tokens, GSPO), or the sequence's
// with the token's gradient (GSPO-token).
Tensor log_ratio(const LossContext& c, const Tensor& log_probs, const Tensor& old, const Options& o) {
  const Tensor token = log_probs - old;
  if (o.importance_sampling_level.get() == "token") return token;
  const Tensor sequence = c.to_tokens(c.row_sum(token) / c.row_tokens().clamp_min(1.0));
  if (o.importance_sampling_level.get() == "sequence") return sequence;
  COLLIMATE_CHECK(o.importance_sampling_level.get() == "sequence_token", "no importance sampling level {}",
                  o.importance_sampling_level.get());
  return log_probs - log_probs.detach() + sequence.detach();
}

// KL against the reference by the k3 estimator (Schulman 2020).
Tensor reference_kl(const LossContext& c, const Tensor& log_probs) {
  const Tensor difference = c.per_token(batch::kReferenceLogProbs) - log_probs;
  return difference.exp() - difference - 1;
}

// The tokens of the update whose entropy is highest; all of them where no quantile is set.
struct TrainedTokens {
  Tensor mask;      // [M] 1 or 0; undefined: all are trained
  double part = 1;  // of the update's tokens
};

TrainedTokens trained_tokens(const LossContext& c, const Options& o) {
  if (o.top_entropy_quantile >= 1.0) return {};
  const Tensor& all = c.surveyed(0).all;
  const Tensor threshold = all.quantile(1 - o.top_entropy_quantile);
  return {(c.entropy().detach() >= threshold).to(at::kFloat), (all >= threshold).to(at::kDouble).mean().item<double>()};
}

// 0 at the tokens of samples that are worse than expected and have become unlikely since they were drawn (DeepSeek-V3.2
// 2025).
Tensor on_policy_tokens(const LossContext& c, const Terms& t, const Options& o) {
  const Tensor sampled = c.per_token(c.rows().has(batch::kLogProbs.name) ? batch::kLogProbs : batch::kOldLogProbs);
  const Tensor fall = c.row_sum(sampled - t.log_probs.detach()) / c.row_tokens().clamp_min(1.0);
  const Tensor kept = (c.to_tokens(fall) <= **o.off_policy_mask_threshold).logical_or(t.advantages >= 0);
  return kept.to(at::kFloat);
}

// Mean entropy of the update's trained tokens.
Tensor entropy_bonus(const LossContext& c, const TrainedTokens& trained) {
  const Tensor entropy = trained.mask.defined() ? c.entropy() * trained.mask : c.entropy();
  return entropy.sum() / (c.global_tokens() * trained.part);
}

// Tokens whose ratio is outside the clip on the side that their advantage pushes to. As TRL counts them: after `delta`,
// which hides what lies beyond 1 + epsilon_high where it is lower; for cispo above its cap.
void report(LossContext& c, Surrogate surrogate, const Terms& t, const Tensor& log_ratios, const Options& o) {
  const Tensor r = surrogate == clipped ? bounded(t.ratio.detach(), o) : t.ratio.detach();
  const bool capped = surrogate == cispo;
  const Tensor low = (r < (capped ? 0.0 : 1 - o.epsilon)).logical_and(t.advantages < 0);
  const Tensor high = (r > (capped ? 0.0 : 1.0) + upper_epsilon(o)).logical_and(t.advantages > 0);
  c.token_mean("actor/pg_clipfrac", low.logical_or(high).to(at::kFloat));
  c.token_mean("actor/pg_clipfrac_lower", low.to(at::kFloat));
  c.token_mean("actor/ppo_kl", -log_ratios.detach());
}

Tensor evaluate(LossContext& c, const Preset& preset, const LossSetting& setting) {
  const Options& o = setting.options;
  const double beta = o.beta->value_or(kRolloutBeta);
  const Tensor& log_probs = c.log_probs();
  const Tensor advantages = c.per_token(batch::kAdvantages);
  const Tensor old = c.per_token(c.rows().has(batch::kOldLogProbs.name) ? batch::kOldLogProbs : batch::kLogProbs);
  const Tensor log_ratios = log_ratio(c, log_probs, old, o);
  const Terms terms{c, log_ratios.exp(), log_probs - old, log_probs, advantages};
  Tensor tokens = preset.surrogate(terms, o);
  c.metric("actor/pg_loss", preset.aggregate(tokens, c, setting), 0.0);
  if (o.off_policy_mask_threshold->has_value()) tokens = tokens * on_policy_tokens(c, terms, o);
  const TrainedTokens trained = trained_tokens(c, o);
  if (trained.mask.defined()) tokens = tokens * trained.mask;
  if (beta != 0.0) {
    Tensor kl = reference_kl(c, log_probs);
    if (o.use_bias_correction_kl) kl = kl * terms.ratio;
    c.token_mean("actor/kl_loss", kl);
    tokens = tokens + kl * beta;
  }
  report(c, preset.surrogate, terms, log_ratios, o);
  Tensor loss = preset.aggregate(tokens, c, setting);
  if (c.entropy().defined()) c.token_mean("actor/entropy", c.entropy());
  if (o.entropy_coefficient != 0.0) loss = loss - entropy_bonus(c, trained) * o.entropy_coefficient.get();
  return loss;
}

// epsilon and epsilon_high are read by all: they bound what is counted as clipped.
std::vector<std::string> options(const std::string& type) {
  std::vector<std::string> names = {"beta",
                                    "importance_sampling_level",
                                    "epsilon",
                                    "epsilon_high",
                                    "use_bias_correction_kl",
                                    "entropy_coefficient",
                                    "top_entropy_quantile",
                                    "off_policy_mask_threshold"};
  const Surrogate surrogate = preset_of(type).surrogate;
  if (surrogate == clipped) names.emplace_back("delta");
  if (surrogate == sapo) names.insert(names.end(), {"sapo_temperature_pos", "sapo_temperature_neg"});
  if (surrogate == vespo)
    names.insert(names.end(), {"vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg"});
  return names;
}

Loss make(const std::string& type, const LossSetting& setting) {
  const Options& o = setting.options;
  const Preset& preset = preset_of(type);
  if (type == "dr_grpo" && setting.completion_tokens <= 0)
    throw base::InputError(base::expectation("algorithm.loss_type", "a completion limit for dr_grpo", "none",
                                             "rollout.completion_tokens"));
  Loss loss{.name = type, .columns = {batch::kAdvantages.name}};
  loss.needs.entropy = o.entropy_coefficient != 0.0 || o.top_entropy_quantile < 1.0;
  if (o.beta->value_or(kRolloutBeta) != 0.0) loss.columns.push_back(batch::kReferenceLogProbs.name);
  loss.value = [&preset, setting](LossContext& c) { return evaluate(c, preset, setting); };
  if (o.top_entropy_quantile < 1.0) {
    loss.surveys = 1;
    loss.survey = [](LossContext& c) { return std::vector<Tensor>{c.entropy().detach()}; };
  }
  return loss;
}

}  // namespace

LossEntry policy_losses() {
  LossEntry entry{"rollouts", {}, options, make};
  for (const Preset& preset : kPresets) entry.types.emplace_back(preset.name);
  return entry;
}

}  // namespace collimate::rlhf
