#pragma once

#include <span>
#include <string>
#include <vector>

#include "collimate/rlhf/advantage/list.h"

namespace collimate::rlhf {

// Returns what "gae" adds to rows: advantages, whitened over them all unless that is switched off, and returns.
Batch gae_advantages(const Batch& rows, const AlgorithmOptions& options, bool whiten_advantages = true);

// KL of the policy against the reference at each token, as TRL's PPOTrainer estimates it (Schulman 2020): "k1" is
// log p - log p_ref, "k3" p_ref / p - 1 + log p - log p_ref, which is never negative.
std::vector<float> token_kl(std::span<const float> log_probs, std::span<const float> reference,
                            const std::string& estimator);

// One row's rewards, values -> advantages and returns (advantage + value), all over its trainable tokens in order.
struct GaeRow {
  std::vector<float> advantages;
  std::vector<float> returns;
};
GaeRow gae(std::span<const float> rewards, std::span<const float> values, double gamma, double lambda);

// (x - mean) / sqrt(unbiased variance + 1e-8) over all entries; the mean is kept when `shift_mean` is false.
void whiten(std::vector<std::vector<float>>& rows, bool shift_mean = true);

}  // namespace collimate::rlhf
