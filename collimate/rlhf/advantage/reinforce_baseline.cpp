#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/batch/trainable.h"
#include "collimate/rlhf/advantage/group.h"
#include "collimate/rlhf/advantage/token_rewards.h"

namespace collimate::rlhf {
namespace {

Batch add_whitened_differences(const Batch& rows, const AlgorithmOptions& options) {
  const auto groups = rewards_by_group(rows);
  std::vector<double> values;
  for (int64_t r = 0; r < rows.rows(); ++r)
    values.push_back(rows.get(batch::kReward, r) -
                     group_moments(groups.at(rows.get(batch::kPromptUid, r)), options).mean);
  Batch out = with_row_advantages(rows, values);
  std::vector<std::vector<float>> advantages;
  for (int64_t r = 0; r < rows.rows(); ++r) advantages.push_back(batch::at_trainable(out, batch::kAdvantages, r));
  whiten(advantages, options);
  for (int64_t r = 0; r < rows.rows(); ++r) advantages[r] = spread(rows, r, advantages[r]);
  out.set_ragged(batch::kAdvantages, advantages);
  return out;
}

}  // namespace

// "reinforce_plus_plus_baseline" (Hu 2025, REINFORCE++; as in verl 0.10): reward less the mean reward of the prompt's
// samples, whitened over the tokens of the iteration.
AdvantageEntry reinforce_baseline_entry() {
  return {.name = "reinforce_plus_plus_baseline",
          .rows = "groups",
          .needs = {"uid", "prompt_uid", "trainable", "reward"},
          .makes = {"advantages"},
          .options = {"lone_samples", "whiten_variance"},
          .add = add_whitened_differences};
}

}  // namespace collimate::rlhf
