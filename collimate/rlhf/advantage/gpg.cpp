#include <algorithm>

#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/group.h"

namespace collimate::rlhf {
namespace {

Batch add_rescaled(const Batch& rows, const AlgorithmOptions& options) {
  const auto groups = rewards_by_group(rows);
  double nonzero = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) nonzero += rows.get(batch::kReward, r) != 0.F ? 1 : 0;
  const double scale = static_cast<double>(rows.rows()) / std::max(1.0, nonzero);
  std::vector<double> values;
  for (int64_t r = 0; r < rows.rows(); ++r)
    values.push_back(
        scale * (rows.get(batch::kReward, r) - group_moments(groups.at(rows.get(batch::kPromptUid, r)), options).mean));
  return with_row_advantages(rows, values);
}

}  // namespace

// "gpg" (Chu et al. 2025, GPG; as in verl 0.10): reward less the mean reward of the prompt's samples, times the number
// of the iteration's samples by that of those with a reward other than 0. Its loss is loss_type gpg.
AdvantageEntry gpg_entry() {
  return {.name = "gpg",
          .rows = "groups",
          .needs = {"uid", "prompt_uid", "trainable", "reward"},
          .makes = {"advantages"},
          .options = {"lone_samples"},
          .add = add_rescaled};
}

}  // namespace collimate::rlhf
