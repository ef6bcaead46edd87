#include <algorithm>
#include <map>

#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/group.h"

namespace collimate::rlhf {
namespace {

struct Weighted {
  double rewards = 0, tokens = 0;
  int64_t samples = 0;

  double mean() const { return tokens > 0 ? rewards / tokens : 0.0; }
};

Batch add_optimal(const Batch& rows, const AlgorithmOptions& options) {
  rewards_by_group(rows);  // refuses rewards that are not finite
  std::map<int64_t, Weighted> groups;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    Weighted& group = groups[rows.get(batch::kPromptUid, r)];
    const auto tokens = static_cast<double>(std::ranges::count(rows.row(batch::kTrainable, r), 1));
    group.rewards += tokens * rows.get(batch::kReward, r);
    group.tokens += tokens;
    ++group.samples;
  }
  return with_row_advantages(rows, [&](int64_t r) {
    const Weighted& group = groups.at(rows.get(batch::kPromptUid, r));
    const bool kept = group.samples == 1 && options.lone_samples == std::string("reward");
    return rows.get(batch::kReward, r) - (kept ? 0.0 : group.mean());
  });
}

}  // namespace

// "opo" (Hao et al. 2025, On-Policy RL with Optimal Reward Baseline; as in verl 0.10) is a reward less the mean reward
// of the prompt's samples, in which each sample weighs as much as it has trainable tokens.
AdvantageEntry optimal_baseline_entry() {
  return baseline_entry("opo", add_optimal,
                        "OPO: a reward less the mean of the prompt's samples, in which longer ones count more.");
}

}  // namespace collimate::rlhf
