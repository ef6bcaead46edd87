#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/group.h"

namespace collimate::rlhf {
namespace {

Batch add_rescaled(const Batch& rows, const AlgorithmOptions& options) {
  const auto groups = rewards_by_group(rows);
  const std::vector<float> rewards = rows.all(batch::kReward);
  const auto zero = std::ranges::count(rewards, 0.F), all = std::ssize(rewards);
  const double scale = static_cast<double>(all) / static_cast<double>(std::max<std::ptrdiff_t>(1, all - zero));
  return with_row_advantages(rows, [&](int64_t r) {
    return scale * (base::at(rewards, r) - group_moments(groups.at(rows.get(batch::kPromptUid, r)), options).mean);
  });
}

}  // namespace

// "gpg" (Chu et al. 2025, GPG; as in verl 0.10) is a reward less the mean reward of the prompt's samples, times the
// number of samples in the iteration / the number of samples with a reward other than 0. The loss that goes with it is
// loss_type gpg.
AdvantageEntry gpg_entry() {
  return baseline_entry("gpg", add_rescaled,
                        "GPG: a reward less the mean of the prompt's samples, scaled up where many rewards are 0.");
}

}  // namespace collimate::rlhf
