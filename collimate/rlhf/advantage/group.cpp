#include "collimate/rlhf/advantage/group.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::rlhf {
namespace {

Batch add_group(const Batch& rows, const AlgorithmOptions& options) {
  std::map<int64_t, Moments> statistics;
  std::vector<double> all;
  for (const auto& [uid, rewards] : rewards_by_group(rows)) {
    statistics[uid] = group_moments(rewards, options);
    all.insert(all.end(), rewards.begin(), rewards.end());
  }
  const Moments batch = moments(all);
  return with_row_advantages(rows, [&](int64_t r) {
    const Moments& group = statistics.at(rows.get(batch::kPromptUid, r));
    return (rows.get(batch::kReward, r) - group.mean) / advantage_divisor(options, group, batch);
  });
}

}  // namespace

Moments moments(const std::vector<double>& values) {
  Moments m;
  for (double v : values) m.mean += v / static_cast<double>(values.size());
  if (values.size() < 2) return m;
  double squares = 0;
  for (double v : values) squares += (v - m.mean) * (v - m.mean);
  m.std = std::sqrt(squares / static_cast<double>(values.size() - 1));
  return m;
}

Moments group_moments(const std::vector<double>& values, const AlgorithmOptions& options) {
  if (values.size() == 1 && options.lone_samples == std::string("reward")) return {0.0, 1.0};
  return moments(values);
}

double advantage_divisor(const AlgorithmOptions& o, const Moments& group, const Moments& batch) {
  if (o.scale_rewards == std::string("none")) return 1.0;
  const double divisor = (o.scale_rewards == std::string("batch") ? batch.std : group.std) + o.advantage_epsilon;
  return divisor > 0 ? divisor : 1.0;  // rewards are equal and epsilon is 0, so differences are 0
}

// "group" compares a reward with those of its sample group (rows of one prompt_uid; GRPO, Shao et al. 2024): the
// advantage is (reward - group mean) / (std + advantage_epsilon) at every trainable token. By scale_rewards the std is
// the group's or the batch's, or the divisor is 1. The std is unbiased. A group of one sample has advantage 0 or, by
// lone_samples, the sample's reward. Throws InputError, naming the row, for a reward that is not finite.
AdvantageEntry group_entry() {
  return {
      .name = "group",
      .options = {"scale_rewards", "advantage_epsilon", "lone_samples"},
      .add = add_group,
      .about =
          "GRPO: a reward less the mean of the prompt's samples, divided by their standard deviation (scale_rewards)."};
}

AdvantageEntry baseline_entry(const char* name, decltype(AdvantageEntry::add) add, const char* about) {
  return {.name = name, .options = {"lone_samples"}, .add = add, .about = about};
}

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

Batch with_row_advantages(const Batch& rows, const std::vector<double>& values) {
  return with_token_advantages(rows, by_row(rows, [&](int64_t r) {
                                 const auto tokens =
                                     static_cast<size_t>(std::ranges::count(rows.row(batch::kTrainable, r), 1));
                                 return std::vector<float>(tokens, static_cast<float>(base::at(values, r)));
                               }));
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
