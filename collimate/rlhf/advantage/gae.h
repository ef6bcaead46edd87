#pragma once

#include <span>
#include <vector>

#include "collimate/batch/batch.h"

namespace collimate::rlhf {

// Generalised advantage estimation (Schulman et al. 2016) with the KL against the reference in the reward, as in TRL's
// PPOTrainer and DeepSpeed-Chat.
struct GaeOptions {
  double gamma = 1.0;
  double lambda = 0.95;
  double kl_coefficient = 0.05;
  bool whiten_rewards = false;
  bool whiten_advantages = true;
};

// One row's rewards, values -> advantages and returns (advantage + value), all over its trainable tokens in order.
struct GaeRow {
  std::vector<float> advantages;
  std::vector<float> returns;
};
GaeRow gae(std::span<const float> rewards, std::span<const float> values, double gamma, double lambda);

// (x - mean) / sqrt(unbiased variance + 1e-8) over all entries; the mean is kept when `shift_mean` is false.
void whiten(std::vector<std::vector<float>>& rows, bool shift_mean = true);

// Reads reward, log_probs, reference_log_probs (with a kl_coefficient) and values; adds `advantages` and `returns` [L],
// 0 where nothing is trained. The reward lands on the last trainable token.
Batch gae_advantages(const Batch& rows, const GaeOptions& options);

}  // namespace collimate::rlhf
