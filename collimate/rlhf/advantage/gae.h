#pragma once

#include <span>
#include <vector>

#include "collimate/rlhf/advantage/list.h"

namespace collimate::rlhf {

// "gae": generalised advantage estimation (Schulman et al. 2016) with the KL against the reference in the reward, as in
// TRL's PPOTrainer and DeepSpeed-Chat. Reads reward, log_probs, reference_log_probs and values; the reward lands on the
// last trainable token; advantages are whitened over the iteration.
AdvantageEntry gae_entry();
Batch gae_advantages(const Batch& rows, const AlgorithmOptions& options, bool whiten_advantages = true);

// One row's rewards, values -> advantages and returns (advantage + value), all over its trainable tokens in order.
struct GaeRow {
  std::vector<float> advantages;
  std::vector<float> returns;
};
GaeRow gae(std::span<const float> rewards, std::span<const float> values, double gamma, double lambda);

// (x - mean) / sqrt(unbiased variance + 1e-8) over all entries; the mean is kept when `shift_mean` is false.
void whiten(std::vector<std::vector<float>>& rows, bool shift_mean = true);

}  // namespace collimate::rlhf
