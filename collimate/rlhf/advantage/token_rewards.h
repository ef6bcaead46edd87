#pragma once

#include <span>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/rlhf/types/algorithm.h"

namespace collimate::rlhf {

using TokenValues = std::vector<std::vector<float>>;  // [rows][trainable tokens], in order

// Returns value(r) for every row r.
template <class F>
auto by_row(const Batch& rows, const F& value) {
  std::vector<decltype(value(int64_t{0}))> out;
  for (int64_t r = 0; r < rows.rows(); ++r) out.push_back(value(r));
  return out;
}

// Estimates the KL of the policy against the reference at each token by an estimator of Schulman 2020, as TRL's
// PPOTrainer and verl have them: "k1" is log p - log p_ref, "k2" is half its square, "k3" is
// p_ref / p - 1 + log p - log p_ref. "k2" and "k3" are never negative.
std::vector<float> token_kl(std::span<const float> log_probs, std::span<const float> reference,
                            const std::string& estimator);

// Returns the KL at each trainable token of row r, estimated as kl_estimator says.
std::vector<float> row_kl(const Batch& rows, int64_t r, const AlgorithmOptions& options);

// Returns row r's rewards over its trainable tokens in order: -kl_coefficient · KL at each, plus the row's reward at
// the last one. With a coefficient of 0 the batch needs neither log_probs nor reference_log_probs.
std::vector<float> token_rewards(const Batch& rows, int64_t r, const AlgorithmOptions& options, double kl_coefficient);

// Returns [L]: the values of row r's trainable tokens at their places, and 0 elsewhere.
std::vector<float> spread(const Batch& rows, int64_t r, std::span<const float> values);
// Returns that for every row.
TokenValues spread(const Batch& rows, TokenValues values);
// Returns the rows with a column `advantages` that has these values at the trainable tokens.
Batch with_token_advantages(const Batch& rows, TokenValues values);

// Replaces each x by (x - mean) / sqrt(unbiased variance + 1e-8), where mean and variance are over all entries. If
// options.whiten_variance is "biased", the divisor is sqrt(max(biased variance, 1e-8)). The mean is added back when
// `shift_mean` is false. Fewer than two entries stay as they are.
void whiten(TokenValues& rows, const AlgorithmOptions& options, bool shift_mean = true);

}  // namespace collimate::rlhf
