#include "collimate/rlhf/advantage/token_rewards.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/trainable.h"

namespace collimate::rlhf {

std::vector<float> token_kl(std::span<const float> log_probs, std::span<const float> reference,
                            const std::string& estimator) {
  COLLIMATE_CHECK(estimator == "k1" || estimator == "k2" || estimator == "k3", "no KL estimator {}", estimator);
  std::vector<float> out(log_probs.size());
  for (size_t t = 0; t < out.size(); ++t) {
    const float k1 = log_probs[t] - reference[t];
    out[t] = estimator == "k1" ? k1 : estimator == "k2" ? 0.5F * k1 * k1 : std::expm1(-k1) + k1;
  }
  return out;
}

std::vector<float> row_kl(const Batch& rows, int64_t r, const AlgorithmOptions& options) {
  return token_kl(batch::at_trainable(rows, batch::kLogProbs, r),
                  batch::at_trainable(rows, batch::kReferenceLogProbs, r), options.kl_estimator);
}

std::vector<float> token_rewards(const Batch& rows, int64_t r, const AlgorithmOptions& options, double kl_coefficient) {
  std::vector<float> rewards;
  if (kl_coefficient == 0.0) {
    rewards.assign(static_cast<size_t>(std::ranges::count(rows.row(batch::kTrainable, r), 1)), 0.F);
  } else {
    rewards = row_kl(rows, r, options);
    for (float& reward : rewards) reward *= static_cast<float>(-kl_coefficient);
  }
  if (!rewards.empty()) rewards.back() += rows.get(batch::kReward, r);
  return rewards;
}

std::vector<float> spread(const Batch& rows, int64_t r, std::span<const float> values) {
  std::vector<float> out;
  size_t next = 0;
  for (uint8_t trainable : rows.row(batch::kTrainable, r))
    out.push_back(trainable != 0 ? base::at(values, next++) : 0.F);
  return out;
}

TokenValues spread(const Batch& rows, TokenValues values) {
  for (int64_t r = 0; r < rows.rows(); ++r) base::at(values, r) = spread(rows, r, base::at(values, r));
  return values;
}

Batch with_token_advantages(const Batch& rows, TokenValues values) {
  Batch out = rows;
  out.set_ragged(batch::kAdvantages, spread(rows, std::move(values)));
  return out;
}

void whiten(TokenValues& rows, const AlgorithmOptions& options, bool shift_mean) {
  double sum = 0, squares = 0, count = 0;
  for (const auto& row : rows)
    for (float x : row) sum += x, count += 1;
  if (count < 2) return;
  const double mean = sum / count;
  for (const auto& row : rows)
    for (float x : row) squares += (x - mean) * (x - mean);
  const bool biased = options.whiten_variance == std::string("biased");
  const double scale = 1.0 / std::sqrt(biased ? std::max(squares / count, 1e-8) : squares / (count - 1) + 1e-8);
  for (auto& row : rows)
    for (float& x : row) x = static_cast<float>((x - mean) * scale + (shift_mean ? 0.0 : mean));
}

}  // namespace collimate::rlhf
