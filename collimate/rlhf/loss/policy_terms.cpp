#include "collimate/rlhf/loss/policy_terms.h"

#include <ATen/TensorOperators.h>

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;
using Options = AlgorithmOptions;

Tensor limited(const Tensor& values, const std::optional<double>& least, const std::optional<double>& most) {
  if (!least && !most) return values;
  return values.clamp(least ? std::optional<at::Scalar>(*least) : std::nullopt,
                      most ? std::optional<at::Scalar>(*most) : std::nullopt);
}

// Returns [M]: the log of the importance ratio at the level that the options ask for. It is the token's own ("token"),
// the sum over the sequence's tokens ("sequence_sum", RLOO), their mean ("sequence", GSPO), or the mean with the
// gradient of the token's own ("sequence_token", GSPO-token).
Tensor level_log_ratio(const LossContext& c, const Tensor& log_probs, const Tensor& old, const Options& o) {
  const Tensor token = log_probs - old;
  if (o.importance_sampling_level.get() == "token") return token;
  if (o.importance_sampling_level.get() == "sequence_sum") return c.to_tokens(c.row_sum(token));
  const Tensor sequence = c.to_tokens(c.row_sum(token) / c.row_tokens().clamp_min(1.0));
  if (o.importance_sampling_level.get() == "sequence") return sequence;
  COLLIMATE_CHECK(o.importance_sampling_level.get() == "sequence_token", "no importance sampling level {}",
                  o.importance_sampling_level.get());
  return log_probs - log_probs.detach() + sequence.detach();
}

Tensor log_ratio(const LossContext& c, const Tensor& log_probs, const Tensor& old, const Options& o) {
  return limited(level_log_ratio(c, log_probs, old, o), o.log_ratio_min, o.log_ratio_max);
}

// Returns [M]: the KL against the reference by an estimator of Schulman 2020, from d = log p_ref - log p. "k1+" and
// "k3+" have the values of k1 and k3 and the gradient of k2, which is that of the KL itself (as in verl). The two
// limits act on k3 alone.
Tensor reference_kl(const LossContext& c, const Tensor& log_probs, const Options& o) {
  const std::string& estimator = o.kl_loss_estimator;
  const Tensor difference = c.per_token(batch::kReferenceLogProbs) - log_probs;
  const Tensor k2 = difference.square() * 0.5;
  if (estimator == "k2") return k2;
  Tensor kl = -difference;
  if (estimator == "k3" || estimator == "k3+") {
    const std::optional<double>& most = o.kl_loss_log_ratio_limit;
    const Tensor bounded = most ? difference.clamp(-*most, *most) : difference;
    kl = bounded.exp() - bounded - 1;
    if (o.kl_loss_limit->has_value()) kl = kl.clamp(-**o.kl_loss_limit, **o.kl_loss_limit);
  }
  return estimator.back() == '+' ? k2 - k2.detach() + kl.detach() : kl;
}

// The tokens that are trained: those of the update with the highest entropy, or all if no quantile is set.
struct TrainedTokens {
  Tensor mask;      // [M] 1 or 0; undefined: all are trained
  double part = 1;  // share of the update's tokens that is trained
};

// Returns this micro-batch's trained tokens. `survey` is the index of the entropies among the update's surveys.
TrainedTokens trained_tokens(const LossContext& c, const Options& o, size_t survey) {
  if (o.top_entropy_quantile >= 1.0) return {};
  const Tensor& all = c.surveyed(survey).all;
  const Tensor threshold = all.quantile(1 - o.top_entropy_quantile);
  return {(c.entropy().detach() >= threshold).to(at::kFloat), (all >= threshold).to(at::kDouble).mean().item<double>()};
}

// Returns [M]: 0 at tokens with a negative advantage whose sample's mean log-prob has fallen by more than
// off_policy_mask_threshold since it was drawn, else 1 (DeepSeek-V3.2 2025).
Tensor on_policy_tokens(const LossContext& c, const PolicyTerms& t, const Options& o) {
  const Tensor sampled = c.per_token(c.rows().has(batch::kLogProbs.name) ? batch::kLogProbs : batch::kOldLogProbs);
  const Tensor fall = c.row_sum(sampled - t.log_probs.detach()) / c.row_tokens().clamp_min(1.0);
  const Tensor kept = (c.to_tokens(fall) <= **o.off_policy_mask_threshold).logical_or(t.advantages >= 0);
  return kept.to(at::kFloat);
}

// Returns this micro-batch's part of the mean entropy of the update's trained tokens.
Tensor entropy_bonus(const LossContext& c, const TrainedTokens& trained) {
  const Tensor entropy = trained.mask.defined() ? c.entropy() * trained.mask : c.entropy();
  return entropy.sum() / (c.global_tokens() * trained.part);
}

// Reports the share of the tokens that count as clipped (ClipRange) and the mean of -log-ratio.
void report(LossContext& c, const ClipRange& range, const PolicyTerms& t, const Tensor& log_ratios) {
  const Tensor ratio = t.ratio.detach();
  const Tensor low = (ratio < range.low).logical_and(t.advantages < 0);
  const Tensor high = (ratio > range.high).logical_and(t.advantages > 0);
  c.token_mean("actor/pg_clipfrac", low.logical_or(high).to(at::kFloat));
  c.token_mean("actor/pg_clipfrac_lower", low.to(at::kFloat));
  c.token_mean("actor/ppo_kl", -log_ratios.detach());
}

struct Ratios {
  Tensor logarithms;  // [M]
  PolicyTerms terms;
};

Ratios ratios_of(const LossContext& c, const Options& o) {
  const Tensor& log_probs = c.log_probs();
  const Tensor old = c.per_token(c.rows().has(batch::kOldLogProbs.name) ? batch::kOldLogProbs : batch::kLogProbs);
  const Tensor logarithms = log_ratio(c, log_probs, old, o);
  return {logarithms, {c, logarithms.exp(), log_probs - old, log_probs, c.per_token(batch::kAdvantages)}};
}

Tensor surrogate_loss(const PolicyLoss& policy, const PolicyTerms& terms, const Options& o) {
  const Tensor tokens = policy.surrogate.loss(terms, o);
  return o.token_loss_limit->has_value() ? tokens.clamp_max(**o.token_loss_limit) : tokens;
}

Tensor evaluate(LossContext& c, const PolicyLoss& policy, const LossSetting& setting) {
  const Options& o = setting.options;
  const double beta = o.beta->value_or(kRolloutBeta);
  const auto [log_ratios, terms] = ratios_of(c, o);
  Tensor tokens = surrogate_loss(policy, terms, o);
  c.metric("actor/pg_loss", policy.aggregate(tokens, c, setting), 0.0);
  if (o.off_policy_mask_threshold->has_value()) tokens = tokens * on_policy_tokens(c, terms, o);
  const TrainedTokens trained = trained_tokens(c, o, policy.survey.count);
  if (trained.mask.defined()) tokens = tokens * trained.mask;
  if (beta != 0.0) {
    Tensor kl = reference_kl(c, c.log_probs(), o);
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
                                    "log_ratio_min",
                                    "log_ratio_max",
                                    "token_loss_limit",
                                    "use_bias_correction_kl",
                                    "kl_loss_estimator",
                                    "kl_loss_log_ratio_limit",
                                    "kl_loss_limit",
                                    "entropy_coefficient",
                                    "top_entropy_quantile",
                                    "off_policy_mask_threshold"};
  if (policy.aggregate == normalized_token_sum) names.emplace_back("token_normalizer");
  names.insert(names.end(), policy.surrogate.options.begin(), policy.surrogate.options.end());
  return names;
}

Loss made(const PolicyLoss& policy, const LossSetting& setting) {
  const Options& o = setting.options;
  if (policy.check != nullptr) policy.check(policy.name, setting);
  Loss loss{.name = policy.name, .columns = {batch::kAdvantages.name}};
  loss.needs.entropy = o.entropy_coefficient != 0.0 || o.top_entropy_quantile < 1.0;
  if (o.beta->value_or(kRolloutBeta) != 0.0) loss.columns.push_back(batch::kReferenceLogProbs.name);
  if (policy.aggregate == normalized_token_sum && o.token_normalizer == std::string("iteration"))
    loss.columns.push_back(kIterationTokens.name);
  loss.columns.insert(loss.columns.end(), policy.survey.columns.begin(), policy.survey.columns.end());
  loss.value = [policy, setting](LossContext& c) { return evaluate(c, policy, setting); };
  const bool entropies = o.top_entropy_quantile < 1.0;
  loss.surveys = policy.survey.count + (entropies ? 1 : 0);
  if (loss.surveys > 0)
    loss.survey = [policy, setting, entropies](LossContext& c) {
      std::vector<Tensor> lists;
      if (policy.survey.count > 0) lists = policy.survey.lists(ratios_of(c, setting.options).terms, setting.options);
      if (entropies) lists.push_back(c.entropy().detach());
      return lists;
    };
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
  if (s.options.token_normalizer == std::string("update")) return update_token_mean(tokens, c, s);
  const double iteration = c.rows().get(kIterationTokens, 0);
  return tokens.sum() * (s.updates / std::max(1.0, iteration));
}

LossEntry policy_entry(std::vector<PolicyLoss> losses) {
  LossEntry entry{.rows = "rollouts"};
  for (const PolicyLoss& policy : losses) {
    entry.types.push_back(policy.name);
    entry.about[policy.name] = policy.about;
  }
  const auto named = [all = std::move(losses)](const std::string& type) -> const PolicyLoss& {
    return *std::ranges::find(all, type, &PolicyLoss::name);
  };
  entry.options = [named](const std::string& type) { return options_of(named(type)); };
  entry.make = [named](const std::string& type, const LossSetting& setting) { return made(named(type), setting); };
  return entry;
}

}  // namespace collimate::rlhf
