#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>

#include <algorithm>

#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/loss/policy_terms.h"
#include "collimate/tensor/results.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;
using Options = AlgorithmOptions;
using Terms = PolicyTerms;

enum Surveyed { kAdvantageList, kLogProbList, kDrawList };

constexpr float kClippedAlready = -1.F;  // stands in kDrawList for a token whose ratio is clipped

// Returns (A - mean A) · (log p - mean log p) of these tokens; the means are over the update's tokens.
Tensor covariance(const LossContext& c, const Tensor& advantages, const Tensor& log_probs) {
  return (advantages - c.surveyed(kAdvantageList).all.mean()) * (log_probs - c.surveyed(kLogProbList).all.mean());
}
Tensor own_covariance(const Terms& t) { return covariance(t.context, t.advantages, t.log_probs.detach()); }
Tensor all_covariances(const LossContext& c) {
  return covariance(c, c.surveyed(kAdvantageList).all, c.surveyed(kLogProbList).all);
}

// Returns the number of tokens that is this share of the update's, at least one.
int64_t count_of(const Tensor& all, double share) {
  return std::max<int64_t>(1, static_cast<int64_t>(share * static_cast<double>(all.numel())));
}

// Returns a random number of 24 bits in [0, 1).
float unit_draw(int64_t uid, uint32_t place) {
  constexpr uint32_t kPurpose = 0xc0fa;
  return static_cast<float>(base::random_bits(0, kPurpose, static_cast<uint64_t>(uid), place) >> 40) / 16777216.F;
}

// Returns [M]: a random number for each token, by its sample and place alone, so that micro-batches do not matter.
Tensor draws(const LossContext& c) {
  std::vector<float> out;
  for (int64_t r = 0; r < c.rows().rows(); ++r) {
    const auto trainable = c.rows().row(batch::kTrainable, r);
    for (size_t t = 0; t < trainable.size(); ++t)
      if (trainable[t] != 0) out.push_back(unit_draw(c.rows().get(batch::kUid, r), static_cast<uint32_t>(t)));
  }
  return tensor::tensor_beside(c.log_probs(), std::span<const float>(out));
}

Tensor plain(const Terms& t) { return -t.ratio * t.advantages; }
Tensor clipped_to(const Terms& t, const Options& o) {
  const ClipRange range = clip_range(o);
  return -t.ratio.clamp(range.low, range.high) * t.advantages;
}

Tensor is_candidate(const Tensor& covariances, const Tensor& drawn, const Options& o) {
  return (covariances > o.clip_cov_low.get()).logical_and(covariances < o.clip_cov_high.get()).logical_and(drawn >= 0);
}

// Returns [M]: 0 at the tokens that are left out, which are the candidates with the smallest draws, else 1.
Tensor kept_tokens(const Terms& t, const Options& o, const Tensor& drawn) {
  const LossContext& c = t.context;
  const Tensor& all = c.surveyed(kDrawList).all;
  const Tensor candidates = all.masked_select(is_candidate(all_covariances(c), all, o));
  const int64_t count = std::min(count_of(all, o.clip_cov_share), candidates.numel());
  if (count == 0) return at::ones_like(drawn);
  const Tensor threshold = std::get<0>(candidates.kthvalue(count));
  return is_candidate(own_covariance(t), drawn, o).logical_and(drawn <= threshold).logical_not().to(at::kFloat);
}

// Returns [M]: the draw of each token, or kClippedAlready if the ratio's clip has already taken the token's gradient.
Tensor open_draws(const Terms& t, const Options& o) {
  return draws(t.context).masked_fill(clipped_to(t, o).detach() > plain(t).detach(), kClippedAlready);
}

Tensor clip_by_covariance(const Terms& t, const Options& o) {
  return plain(t).maximum(clipped_to(t, o)) * kept_tokens(t, o, open_draws(t, o));
}

std::vector<Tensor> survey_of_kl(const Terms& t, const Options&) { return {t.advantages, t.log_probs.detach()}; }
std::vector<Tensor> survey_of_clip(const Terms& t, const Options& o) {
  return {t.advantages, t.log_probs.detach(), open_draws(t, o)};
}

Tensor kl_by_covariance(const Terms& t, const Options& o) {
  const Tensor all = all_covariances(t.context);
  if (all.numel() == 0) return plain(t);
  const Tensor least = std::get<0>(all.topk(count_of(all, o.kl_cov_share))).min();
  const Tensor penalty = t.token_log_ratio.abs() * o.kl_cov_coefficient.get();
  return plain(t) + penalty * (own_covariance(t) >= least).to(at::kFloat);
}

}  // namespace

// These losses act against the collapse of entropy (Cui et al. 2025, The Entropy Mechanism of Reinforcement Learning;
// forms and defaults of verl 0.10) by the covariance of a token, (A - mean A) · (log p - mean log p). clip_cov is the
// clipped loss, but 0 at the share clip_cov_share of the update's tokens, which are drawn from the tokens whose
// covariance is between clip_cov_low and clip_cov_high and whose ratio is not clipped. kl_cov is -A · ratio without a
// clip, plus kl_cov_coefficient · |log-ratio| at the share kl_cov_share of the update's tokens that has the largest
// covariances. Both are means over tokens. Means and shares are those of the update; verl takes those of a micro-batch.
LossEntry covariance_losses() {
  const Surrogate clip{
      clip_by_covariance, clip_range, {"epsilon", "epsilon_high", "clip_cov_share", "clip_cov_low", "clip_cov_high"}};
  const Surrogate kl{kl_by_covariance, clip_range, {"epsilon", "epsilon_high", "kl_cov_share", "kl_cov_coefficient"}};
  return policy_entry(
      {{"clip_cov",
        "The clipped loss without a few of the tokens whose advantage and log-prob vary together, "
        "against the collapse of entropy.",
        clip,
        update_token_mean,
        nullptr,
        {3, survey_of_clip, {batch::kUid.name}}},
       {"kl_cov",
        "The loss without a clip, and a KL penalty at the tokens whose advantage and log-prob vary most "
        "together.",
        kl,
        update_token_mean,
        nullptr,
        {2, survey_of_kl}}});
}

}  // namespace collimate::rlhf
