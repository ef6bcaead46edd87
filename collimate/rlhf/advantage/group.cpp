#include "collimate/rlhf/advantage/group.h"

#include <cmath>
#include <map>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::rlhf {
namespace {

struct Moments {
  double mean = 0;
  double std = 0;  // unbiased; 0 for one value
};

Moments moments(const std::vector<double>& values) {
  Moments m;
  for (double v : values) m.mean += v / static_cast<double>(values.size());
  if (values.size() < 2) return m;
  double squares = 0;
  for (double v : values) squares += (v - m.mean) * (v - m.mean);
  m.std = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return m;
}

// Rewards by prompt_uid, in order of the first row of each.
std::map<int64_t, std::vector<double>> rewards_by_group(const Batch& rows) {
  std::map<int64_t, std::vector<double>> groups;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const double reward = rows.get(batch::kReward, r);
    if (!std::isfinite(reward))
      throw base::InputError(base::expectation("advantages", "a finite reward", fmt::format("{} in row {}", reward, r),
                                               "reward.on_error: drop"));
    groups[rows.get(batch::kPromptUid, r)].push_back(reward);
  }
  return groups;
}

double divisor(const GroupAdvantageOptions& o, const Moments& group, const Moments& batch) {
  if (o.scale == "group") return group.std + o.epsilon;
  if (o.scale == "batch") return batch.std + o.epsilon;
  if (o.scale == "none") return 1.0;
  throw base::InputError(base::expectation("algorithm.scale_rewards", "group, batch or none", "\"" + o.scale + "\""));
}

double baseline(const GroupAdvantageOptions& o, const Moments& group, double reward, size_t samples) {
  if (!o.leave_one_out || samples < 2) return group.mean;
  const auto n = static_cast<double>(samples);
  return (group.mean * n - reward) / (n - 1);
}

}  // namespace

Batch group_advantages(const Batch& rows, const GroupAdvantageOptions& options) {
  const auto groups = rewards_by_group(rows);
  std::map<int64_t, Moments> statistics;
  std::vector<double> all;
  for (const auto& [uid, rewards] : groups) {
    statistics[uid] = moments(rewards);
    all.insert(all.end(), rewards.begin(), rewards.end());
  }
  const Moments batch = all.empty() ? Moments{} : moments(all);
  std::vector<std::vector<float>> advantages;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const int64_t uid = rows.get(batch::kPromptUid, r);
    const double reward = rows.get(batch::kReward, r);
    const Moments& group = statistics.at(uid);
    const double value =
        (reward - baseline(options, group, reward, groups.at(uid).size())) / divisor(options, group, batch);
    std::vector<float> row;
    for (uint8_t trainable : rows.row(batch::kTrainable, r))
      row.push_back(trainable != 0 ? static_cast<float>(value) : 0.F);
    advantages.push_back(std::move(row));
  }
  Batch out = rows;
  out.set_ragged(batch::kAdvantages, advantages);
  return out;
}

GroupStatistics group_statistics(const Batch& rows) {
  GroupStatistics out;
  const auto groups = rewards_by_group(rows);
  for (const auto& [uid, rewards] : groups) {
    const Moments group = moments(rewards);
    out.reward_mean += group.mean * static_cast<double>(rewards.size()) / static_cast<double>(rows.rows());
    out.reward_std += group.std / static_cast<double>(groups.size());
    out.zero_std_fraction += (group.std == 0 ? 1.0 : 0.0) / static_cast<double>(groups.size());
  }
  return out;
}

}  // namespace collimate::rlhf
