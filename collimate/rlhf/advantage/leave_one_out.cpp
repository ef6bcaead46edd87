#include <numeric>

#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/group.h"

namespace collimate::rlhf {
namespace {

Batch add_leave_one_out(const Batch& rows, const AlgorithmOptions& options) {
  const bool kept = options.lone_samples == std::string("reward");
  const auto groups = rewards_by_group(rows);
  return with_row_advantages(rows, [&](int64_t r) {
    const std::vector<double>& rewards = groups.at(rows.get(batch::kPromptUid, r));
    const double reward = rows.get(batch::kReward, r);
    const double others = std::accumulate(rewards.begin(), rewards.end(), -reward);
    const auto count = static_cast<double>(rewards.size()) - 1;
    return count > 0 ? reward - others / count : kept ? reward : 0.0;
  });
}

}  // namespace

// "rloo" (Ahmadian et al. 2024) is a reward less the mean reward of the prompt's other samples. A group of one sample
// has 0 or, by lone_samples, the sample's reward. TRL's RLOOTrainer is this with kl_coefficient 0.05, loss_type grpo
// and importance_sampling_level sequence_sum.
AdvantageEntry leave_one_out_entry() {
  return baseline_entry("rloo", add_leave_one_out, "RLOO: a reward less the mean of the prompt's other samples.");
}

}  // namespace collimate::rlhf
