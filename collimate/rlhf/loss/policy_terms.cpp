#include "collimate/rlhf/loss/policy_terms.h"

#include <ATen/TensorOperators.h>

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;
using Options = AlgorithmOptions;

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
Tensor on_policy_tokens(const LossContext& c, const PolicyTerms& t, const Options& o) {
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

// Tokens whose ratio is outside the range on the side that their advantage pushes to.
void report(LossContext& c, const ClipRange& range, const PolicyTerms& t, const Tensor& log_ratios) {
  const Tensor ratio = t.ratio.detach();
  const Tensor low = (ratio < range.low).logical_and(t.advantages < 0);
  const Tensor high = (ratio > range.high).logical_and(t.advantages > 0);
  c.token_mean("actor/pg_clipfrac", low.logical_or(high).to(at::kFloat));
  c.token_mean("actor/pg_clipfrac_lower", low.to(at::kFloat));
  c.token_mean("actor/ppo_kl", -log_ratios.detach());
}

Tensor evaluate(LossContext& c, const PolicyLoss& policy, const LossSetting& setting) {
  const Options& o = setting.options;
  const double beta = o.beta->value_or(kRolloutBeta);
  const Tensor& log_probs = c.log_probs();
  const Tensor advantages = c.per_token(batch::kAdvantages);
  const Tensor old = c.per_token(c.rows().has(batch::kOldLogProbs.name) ? batch::kOldLogProbs : batch::kLogProbs);
  const Tensor log_ratios = log_ratio(c, log_probs, old, o);
  const PolicyTerms terms{c, log_ratios.exp(), log_probs - old, log_probs, advantages};
  Tensor tokens = policy.surrogate.loss(terms, o);
  c.metric("actor/pg_loss", policy.aggregate(tokens, c, setting), 0.0);
  if (o.off_policy_mask_threshold->has_value()) tokens = tokens * on_policy_tokens(c, terms, o);
  const TrainedTokens trained = trained_tokens(c, o);
  if (trained.mask.defined()) tokens = tokens * trained.mask;
  if (beta != 0.0) {
    Tensor kl = reference_kl(c, log_probs);
    if (o.use_bias_correction_kl) kl = kl * terms.ratio;
    c.token_mean("actor/kl_loss", kl);
    tokens = tokens + kl * beta;
  }
  report(c, policy.surrogate.clips(o), terms, log_ratios);
  Tensor loss = policy.aggregate(tokens, c, setting);
  if (c.entropy().defined()) c.token_mean("actor/entropy", c.entropy());
  if (o.entropy_coefficient != 0.0) loss = loss - entropy_bonus(c, trained) * o.entropy_coefficient.get();
  return loss;
}

std::vector<std::string> options_of(const PolicyLoss& policy) {
  std::vector<std::string> names = {"beta",
                                    "importance_sampling_level",
                                    "use_bias_correction_kl",
                                    "entropy_coefficient",
                                    "top_entropy_quantile",
                                    "off_policy_mask_threshold"};
  names.insert(names.end(), policy.surrogate.options.begin(), policy.surrogate.options.end());
  return names;
}

Loss made(const PolicyLoss& policy, const LossSetting& setting) {
  const Options& o = setting.options;
  if (policy.check != nullptr) policy.check(policy.name, setting);
  Loss loss{.name = policy.name, .columns = {batch::kAdvantages.name}};
  loss.needs.entropy = o.entropy_coefficient != 0.0 || o.top_entropy_quantile < 1.0;
  if (o.beta->value_or(kRolloutBeta) != 0.0) loss.columns.push_back(batch::kReferenceLogProbs.name);
  loss.value = [policy, setting](LossContext& c) { return evaluate(c, policy, setting); };
  if (o.top_entropy_quantile < 1.0) {
    loss.surveys = 1;
    loss.survey = [](LossContext& c) { return std::vector<Tensor>{c.entropy().detach()}; };
  }
  return loss;
}

}  // namespace

ClipRange clip_range(const Options& o) { return {1 - o.epsilon, 1 + o.epsilon_high->value_or(o.epsilon)}; }

Tensor sequence_mean(const Tensor& tokens, const LossContext& c, const LossSetting&) {
  return (c.row_sum(tokens) / c.row_tokens().clamp_min(1.0)).sum() / c.global_rows();
}

Tensor update_token_mean(const Tensor& tokens, const LossContext& c, const LossSetting&) {
  return tokens.sum() / c.global_tokens();
}

Tensor normalized_token_sum(const Tensor& tokens, const LossContext& c, const LossSetting& s) {
  return tokens.sum() / (s.token_normalizer > 0 ? s.token_normalizer : c.global_tokens());
}

LossEntry policy_entry(std::vector<PolicyLoss> losses) {
  LossEntry entry{.rows = "rollouts"};
  for (const PolicyLoss& policy : losses) entry.types.push_back(policy.name);
  const auto named = [all = std::move(losses)](const std::string& type) -> const PolicyLoss& {
    return *std::ranges::find(all, type, &PolicyLoss::name);
  };
  entry.options = [named](const std::string& type) { return options_of(named(type)); };
  entry.make = [named](const std::string& type, const LossSetting& setting) { return made(named(type), setting); };
  return entry;
}

}  // namespace collimate::rlhf
