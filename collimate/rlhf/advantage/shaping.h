#pragma once

#include <cstdint>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/rlhf/types/algorithm.h"

// Rewards of an iteration are shaped so before they are compared. Each function returns the rows with a new
// column `reward` and, where they have `step_rewards`, these to match: what a sample gains or loses as a whole falls on
// its last token.
namespace collimate::rlhf {

// Mean and standard deviation of numbers that come in parts (Chan et al. 1983), as trlX keeps them of rewards.
struct RunningMoments {
  double count = 0, mean = 0, squares = 0;  // squares: Σ (x - mean)²

  void add(const std::vector<float>& values);
  double std() const;  // unbiased; 1 where it is not known, or 0
};

// All rewards by `divisor`.
Batch scaled_rewards(const Batch& rows, double divisor);
// Within plus and minus `limit`.
Batch clipped_rewards(const Batch& rows, double limit);
// Each less its penalty.
Batch penalised_rewards(const Batch& rows, const std::vector<float>& penalties);
// Less coefficient · KL at each trainable token, by kl_estimator.
Batch rewards_less_kl(const Batch& rows, const AlgorithmOptions& options, double coefficient);
// The control experiment: permuted over the rows (Fisher-Yates by iteration), so that they say nothing of them.
Batch with_shuffled_rewards(const Batch& rows, int64_t iteration);

// The soft punishment of long completions (Yu et al. 2025, DAPO, equation 13): 0 up to limit - buffer tokens, then
// rising linearly to `most` at the limit.
double overlong_penalty(int64_t tokens, int64_t limit, int64_t buffer, double most);

// kl_coefficient for the next iteration (Ziegler et al. 2019): times 1 + clip(kl / target - 1, ±0.2) · samples /
// horizon.
double adapted_kl_coefficient(double coefficient, double kl, int64_t samples, const AlgorithmOptions& options);
// The KL that kl_target is of: the mean over rows of their mean over tokens (verl), or of their sum.
double kl_for_target(const Batch& rows, const AlgorithmOptions& options);

}  // namespace collimate::rlhf
