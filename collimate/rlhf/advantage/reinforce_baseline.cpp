#include <algorithm>
#include <utility>

#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/group.h"

namespace collimate::rlhf {
namespace {

Batch add_whitened_differences(const Batch& rows, const AlgorithmOptions& options) {
  const auto groups = rewards_by_group(rows);
  TokenValues advantages = by_row(rows, [&](int64_t r) {
    const double mean = group_moments(groups.at(rows.get(batch::kPromptUid, r)), options).mean;
    const auto tokens = static_cast<size_t>(std::ranges::count(rows.row(batch::kTrainable, r), 1));
    return std::vector<float>(tokens, static_cast<float>(rows.get(batch::kReward, r) - mean));
  });
  whiten(advantages, options);
  return with_token_advantages(rows, std::move(advantages));
}

}  // namespace

// "reinforce_plus_plus_baseline" (Hu 2025, REINFORCE++; as in verl 0.10) is a reward less the mean reward of the
// prompt's samples, whitened over the tokens of the iteration.
AdvantageEntry reinforce_baseline_entry() {
  return {.name = "reinforce_plus_plus_baseline",
          .options = {"lone_samples", "whiten_variance"},
          .add = add_whitened_differences,
          .about =
              "REINFORCE++ with a baseline: a reward less the mean of the prompt's samples, standardised over the "
              "iteration."};
}

}  // namespace collimate::rlhf
