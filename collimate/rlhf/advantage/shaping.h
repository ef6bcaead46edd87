#pragma once

#include <cstdint>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/rlhf/types/algorithm.h"

// These functions shape the rewards of an iteration before they are compared. Each one that returns a Batch returns the
// rows with a new column `reward` and, if they have `step_rewards`, with step rewards that match it: a change to a
// sample's reward as a whole falls on its last token.
namespace collimate::rlhf {

// Keeps the mean and standard deviation of numbers that come in parts (Chan et al. 1983), as trlX does for rewards.
struct RunningMoments {
  double count = 0, mean = 0, squares = 0;  // squares: Σ (x - mean)²

  void add(const std::vector<float>& values);
  double std() const;  // unbiased; 1 with fewer than two numbers, or when all are equal
};

// Divides all rewards by `divisor`, step rewards too.
Batch scaled_rewards(const Batch& rows, double divisor);
// Clips each reward to [-limit, limit].
Batch clipped_rewards(const Batch& rows, double limit);
// Subtracts penalties[r] from the reward of row r.
Batch penalised_rewards(const Batch& rows, const std::vector<float>& penalties);
// Subtracts coefficient · KL at each trainable token from the rewards; kl_estimator says how the KL is estimated.
Batch rewards_less_kl(const Batch& rows, const AlgorithmOptions& options, double coefficient);
// Permutes the rewards over the rows (Fisher-Yates, seeded by the iteration), as a control experiment: they then say
// nothing about their rows.
Batch with_shuffled_rewards(const Batch& rows, int64_t iteration);

// Returns the soft punishment of long completions (Yu et al. 2025, DAPO, equation 13): 0 up to limit - buffer tokens,
// from there on rising linearly to `most` at the limit.
double overlong_penalty(int64_t tokens, int64_t limit, int64_t buffer, double most);

// Returns the kl_coefficient of the next iteration (Ziegler et al. 2019): `coefficient` times
// 1 + clip(kl / kl_target - 1, ±0.2) · samples / kl_horizon.
double adapted_kl_coefficient(double coefficient, double kl, int64_t samples, const AlgorithmOptions& options);
// Returns the KL to compare with kl_target: the mean over rows of each row's mean over tokens (verl), or of its sum.
double kl_for_target(const Batch& rows, const AlgorithmOptions& options);

}  // namespace collimate::rlhf
