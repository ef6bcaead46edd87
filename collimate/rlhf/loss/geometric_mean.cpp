#include <ATen/TensorOperators.h>

#include <cmath>

#include "collimate/rlhf/loss/policy_terms.h"

namespace collimate::rlhf {
namespace {

using at::Tensor;
using Options = AlgorithmOptions;

double upper(const Options& o) { return o.epsilon_high->value_or(o.epsilon); }

// Returns [M]: at each token the mean over all tokens of its row.
Tensor row_means(const LossContext& c, const Tensor& tokens) {
  return c.to_tokens(c.row_sum(tokens) / c.row_tokens().clamp_min(1.0));
}

// A log-ratio is clipped on the side to which its advantage pushes.
Tensor geometric_mean(const PolicyTerms& t, const Options& o) {
  const Tensor& ratio = t.token_log_ratio;
  const Tensor kept = ratio.clamp(-o.epsilon.get(), upper(o));
  const Tensor bounded = ratio.minimum(kept).where(t.advantages >= 0, ratio.maximum(kept));
  return -row_means(t.context, bounded).exp() * row_means(t.context, t.advantages);
}

ClipRange clips_of_logarithms(const Options& o) { return {std::exp(-o.epsilon), std::exp(upper(o))}; }

}  // namespace

// gmpo (Zhao et al. 2025, Geometric-Mean Policy Optimization; clipped as in verl 0.10's geo_mean) is a mean over
// samples. A sample's loss is -A · Π ratio^(1 / tokens), where A is the sample's mean advantage. Each token's
// log-ratio is clipped to [-epsilon, epsilon_high], both in nats, on the side to which the token's advantage pushes.
LossEntry geometric_mean_losses() {
  return policy_entry({{"gmpo",
                        "GMPO: the geometric mean of a sample's probability ratios, each clipped, times the advantage.",
                        {geometric_mean, clips_of_logarithms, {"epsilon", "epsilon_high"}},
                        sequence_mean}});
}

}  // namespace collimate::rlhf
