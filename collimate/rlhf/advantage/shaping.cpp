#include "collimate/rlhf/advantage/shaping.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/token_rewards.h"
#include "collimate/rlhf/types/reward_parts.h"

namespace collimate::rlhf {
namespace {

TokenValues rows_of_column(const Batch& rows, const batch::Key<float>& key) {
  return by_row(rows, [&](int64_t r) {
    const auto row = rows.row(key, r);
    return std::vector<float>(row.begin(), row.end());
  });
}

// Returns the rows with these rewards. If they have step rewards, the change falls on the last token's.
Batch with_rewards(const Batch& rows, const std::vector<float>& rewards) {
  Batch out = rows;
  if (rows.has(batch::kStepRewards.name)) {
    std::vector<std::vector<float>> steps = rows_of_column(rows, batch::kStepRewards);
    for (size_t r = 0; r < steps.size(); ++r)
      if (!steps[r].empty()) steps[r].back() += rewards[r] - rows.get(batch::kReward, static_cast<int64_t>(r));
    out.set_ragged(batch::kStepRewards, steps);
  }
  out.set(batch::kReward, rewards);
  return out;
}

// Returns [tokens of row `to`]: each step reward of row `from` at the end of the step with the same number, or of the
// last step if `to` has fewer.
std::vector<float> steps_of_another(const Batch& rows, int64_t from, int64_t to) {
  const auto given = rows.row(batch::kStep, from), own = rows.row(batch::kStep, to);
  const auto rewards = rows.row(batch::kStepRewards, from);
  std::vector<float> out(own.size(), 0.F);
  for (size_t t = 0; t < given.size(); ++t) {
    if (given[t] < 0 || own.empty()) continue;
    const auto place = std::ranges::upper_bound(own, std::min(given[t], own.back()));
    base::at(out, place - own.begin() - 1) += rewards[t];
  }
  return out;
}

std::vector<int64_t> shuffled_rows(int64_t rows, int64_t iteration) {
  constexpr uint32_t kPurpose = 0x5aff1e;
  std::vector<int64_t> from(static_cast<size_t>(rows));
  std::iota(from.begin(), from.end(), 0);
  for (size_t i = from.size(); i > 1; --i)
    std::swap(from[i - 1], from[base::random_bits(static_cast<uint64_t>(iteration), kPurpose, i, 0) % i]);
  return from;
}

}  // namespace

void RunningMoments::add(const std::vector<float>& values) {
  if (values.empty()) return;
  const auto more = static_cast<double>(values.size());
  const double own = std::accumulate(values.begin(), values.end(), 0.0) / more;
  const double gap = own - mean;
  for (const float x : values) squares += (x - own) * (x - own);
  squares += gap * gap * count * more / (count + more);
  mean += gap * more / (count + more);
  count += more;
}

double RunningMoments::std() const {
  const double variance = count > 1 ? squares / (count - 1) : 0.0;
  return variance > 0 ? std::sqrt(variance) : 1.0;
}

Batch scaled_rewards(const Batch& rows, double divisor) {
  Batch out = rows;
  std::vector<float> rewards = rows.all(batch::kReward);
  for (float& reward : rewards) reward = static_cast<float>(reward / divisor);
  out.set(batch::kReward, rewards);
  if (!rows.has(batch::kStepRewards.name)) return out;
  std::vector<std::vector<float>> steps = rows_of_column(rows, batch::kStepRewards);
  for (auto& row : steps)
    for (float& reward : row) reward = static_cast<float>(reward / divisor);
  out.set_ragged(batch::kStepRewards, steps);
  return out;
}

Batch clipped_rewards(const Batch& rows, double limit) {
  std::vector<float> rewards = rows.all(batch::kReward);
  for (float& reward : rewards) reward = std::clamp(reward, static_cast<float>(-limit), static_cast<float>(limit));
  return with_rewards(rows, rewards);
}

Batch penalised_rewards(const Batch& rows, const std::vector<float>& penalties) {
  std::vector<float> rewards = rows.all(batch::kReward);
  for (size_t r = 0; r < rewards.size(); ++r) rewards[r] -= base::at(penalties, r);
  return with_rewards(rows, rewards);
}

Batch rewards_less_kl(const Batch& rows, const AlgorithmOptions& options, double coefficient) {
  Batch out = rows;
  const bool steps = rows.has(batch::kStepRewards.name);
  std::vector<float> rewards = rows.all(batch::kReward);
  std::vector<std::vector<float>> by_token;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    std::vector<float> cost = row_kl(rows, r, options);
    for (float& kl : cost) kl *= static_cast<float>(coefficient);
    base::at(rewards, r) -= static_cast<float>(std::accumulate(cost.begin(), cost.end(), 0.0));
    if (!steps) continue;
    by_token.push_back(spread(rows, r, cost));
    const auto own = rows.row(batch::kStepRewards, r);
    for (size_t t = 0; t < own.size(); ++t) by_token.back()[t] = own[t] - by_token.back()[t];
  }
  out.set(batch::kReward, rewards);
  if (steps) out.set_ragged(batch::kStepRewards, by_token);
  return out;
}

Batch with_shuffled_rewards(const Batch& rows, int64_t iteration) {
  const std::vector<int64_t> from = shuffled_rows(rows.rows(), iteration);
  std::vector<float> rewards;
  for (const int64_t r : from) rewards.push_back(rows.get(batch::kReward, r));
  Batch out = rows;
  out.set(batch::kReward, rewards);
  for (const batch::Key<float>& key : {kRewardParts, kRewardWeights}) {
    if (!rows.has(key.name)) continue;
    const std::vector<std::vector<float>> given = rows_of_column(rows, key);
    std::vector<std::vector<float>> moved;
    for (const int64_t r : from) moved.push_back(base::at(given, r));
    out.set_ragged(key, moved);
  }
  if (!rows.has(batch::kStepRewards.name)) return out;
  std::vector<std::vector<float>> by_step;
  for (const int64_t r : from) by_step.push_back(steps_of_another(rows, r, static_cast<int64_t>(by_step.size())));
  out.set_ragged(batch::kStepRewards, by_step);
  return out;
}

double overlong_penalty(int64_t tokens, int64_t limit, int64_t buffer, double most) {
  const int64_t excess = std::clamp<int64_t>(tokens - (limit - buffer), 0, buffer);
  return buffer > 0 ? most * static_cast<double>(excess) / static_cast<double>(buffer) : 0.0;
}

double adapted_kl_coefficient(double coefficient, double kl, int64_t samples, const AlgorithmOptions& options) {
  const double error = std::clamp(kl / **options.kl_target - 1, -0.2, 0.2);
  return coefficient * (1 + error * static_cast<double>(samples) / static_cast<double>(options.kl_horizon.get()));
}

double kl_for_target(const Batch& rows, const AlgorithmOptions& options) {
  const bool of_token = options.kl_target_of == std::string("token");
  double sum = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const std::vector<float> kl = row_kl(rows, r, options);
    const double row = std::accumulate(kl.begin(), kl.end(), 0.0);
    sum += of_token ? row / std::max<double>(1, static_cast<double>(kl.size())) : row;
  }
  return rows.rows() > 0 ? sum / static_cast<double>(rows.rows()) : 0.0;
}

}  // namespace collimate::rlhf
