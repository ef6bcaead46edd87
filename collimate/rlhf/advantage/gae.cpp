#include "collimate/rlhf/advantage/gae.h"

#include <cmath>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/trainable.h"

namespace collimate::rlhf {
namespace {

using Rows = std::vector<std::vector<float>>;

// -kl_coefficient · KL per token, and the row's reward on the last one.
std::vector<float> token_rewards(const Batch& rows, int64_t r, const AlgorithmOptions& options) {
  std::vector<float> rewards = batch::at_trainable(rows, batch::kLogProbs, r);
  if (options.kl_coefficient == 0.0) {
    rewards.assign(rewards.size(), 0.F);
  } else {
    rewards = token_kl(rewards, batch::at_trainable(rows, batch::kReferenceLogProbs, r), options.kl_estimator);
    for (float& reward : rewards) reward *= static_cast<float>(-options.kl_coefficient.get());
  }
  if (!rewards.empty()) rewards.back() += rows.get(batch::kReward, r);
  return rewards;
}

// Puts the values of trainable tokens back to their places in [L].
std::vector<float> spread(const Batch& rows, int64_t r, const std::vector<float>& values) {
  std::vector<float> out;
  size_t next = 0;
  for (uint8_t trainable : rows.row(batch::kTrainable, r)) out.push_back(trainable != 0 ? values[next++] : 0.F);
  return out;
}

}  // namespace

std::vector<float> token_kl(std::span<const float> log_probs, std::span<const float> reference,
                            const std::string& estimator) {
  COLLIMATE_CHECK(estimator == "k1" || estimator == "k3", "no KL estimator {}", estimator);
  std::vector<float> out(log_probs.size());
  for (size_t t = 0; t < out.size(); ++t) {
    const float k1 = log_probs[t] - reference[t];
    out[t] = estimator == "k1" ? k1 : std::expm1(-k1) + k1;
  }
  return out;
}

GaeRow gae(std::span<const float> rewards, std::span<const float> values, double gamma, double lambda) {
  GaeRow out{std::vector<float>(rewards.size()), std::vector<float>(rewards.size())};
  float last = 0.F;
  for (size_t i = rewards.size(); i-- > 0;) {
    const float next = i + 1 < rewards.size() ? values[i + 1] : 0.F;
    const float delta = rewards[i] + static_cast<float>(gamma) * next - values[i];
    last = delta + static_cast<float>(gamma * lambda) * last;
    out.advantages[i] = last;
    out.returns[i] = last + values[i];
  }
  return out;
}

void whiten(Rows& rows, bool shift_mean) {
  double sum = 0, squares = 0, count = 0;
  for (const auto& row : rows)
    for (float x : row) sum += x, count += 1;
  if (count < 2) return;
  const double mean = sum / count;
  for (const auto& row : rows)
    for (float x : row) squares += (x - mean) * (x - mean);
  const double scale = 1.0 / std::sqrt(squares / (count - 1) + 1e-8);
  for (auto& row : rows)
    for (float& x : row) x = static_cast<float>((x - mean) * scale + (shift_mean ? 0.0 : mean));
}

// "gae": generalised advantage estimation (Schulman et al. 2016) with the KL against the reference in the reward, as in
// TRL's PPOTrainer and DeepSpeed-Chat. Reads reward, log_probs, reference_log_probs and values; the reward lands on the
// last trainable token; advantages are whitened over the iteration.
AdvantageEntry gae_entry() {
  return {"gae",
          "values",
          {"uid", "trainable", "log_probs", "reference_log_probs", "values", "reward"},
          {"advantages", "returns"},
          {"gamma", "lambda", "kl_coefficient", "kl_estimator", "whiten_rewards"},
          [](const Batch& rows, const AlgorithmOptions& options) { return gae_advantages(rows, options); }};
}

Batch gae_advantages(const Batch& rows, const AlgorithmOptions& options, bool whiten_advantages) {
  Rows rewards;
  for (int64_t r = 0; r < rows.rows(); ++r) rewards.push_back(token_rewards(rows, r, options));
  if (options.whiten_rewards) whiten(rewards, false);
  Rows advantages, returns;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    GaeRow row = gae(rewards[r], batch::at_trainable(rows, batch::kValues, r), options.gamma, options.lambda);
    advantages.push_back(std::move(row.advantages));
    returns.push_back(std::move(row.returns));
  }
  if (whiten_advantages) whiten(advantages);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    advantages[r] = spread(rows, r, advantages[r]);
    returns[r] = spread(rows, r, returns[r]);
  }
  Batch out = rows;
  out.set_ragged(batch::kAdvantages, advantages);
  out.set_ragged(batch::kReturns, returns);
  return out;
}

}  // namespace collimate::rlhf
