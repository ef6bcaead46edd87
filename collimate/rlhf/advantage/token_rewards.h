#pragma once

#include <span>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/rlhf/types/algorithm.h"

namespace collimate::rlhf {

using TokenValues = std::vector<std::vector<float>>;  // by row, of its trainable tokens in order

// Gives value(r) of every row r.
template <class F>
auto by_row(const Batch& rows, const F& value) {
  std::vector<decltype(value(int64_t{0}))> out;
  for (int64_t r = 0; r < rows.rows(); ++r) out.push_back(value(r));
  return out;
}

// KL of the policy against the reference at each token by the estimators of Schulman 2020, as TRL's PPOTrainer and verl
// have them: "k1" is log p - log p_ref, "k2" half its square, "k3" p_ref / p - 1 + log p - log p_ref; the last two are
// never negative.
std::vector<float> token_kl(std::span<const float> log_probs, std::span<const float> reference,
                            const std::string& estimator);

// The KL at row r's trainable tokens, by kl_estimator.
std::vector<float> row_kl(const Batch& rows, int64_t r, const AlgorithmOptions& options);

// Row r's rewards over its trainable tokens in order: -kl_coefficient · KL at each, and the row's reward on the last
// one. Without a coefficient the batch needs neither log_probs nor reference_log_probs.
std::vector<float> token_rewards(const Batch& rows, int64_t r, const AlgorithmOptions& options, double kl_coefficient);

// Puts the values of row r's trainable tokens back to their places in [L], 0 elsewhere.
std::vector<float> spread(const Batch& rows, int64_t r, std::span<const float> values);
// Does so for every row.
TokenValues spread(const Batch& rows, TokenValues values);
// The values of every row's tokens as the column `advantages`.
Batch with_token_advantages(const Batch& rows, TokenValues values);

// (x - mean) / sqrt(unbiased variance + 1e-8) over all entries, or by sqrt(max(biased variance, 1e-8)), as
// options.whiten_variance says; the mean is kept when `shift_mean` is false.
void whiten(TokenValues& rows, const AlgorithmOptions& options, bool shift_mean = true);

}  // namespace collimate::rlhf
