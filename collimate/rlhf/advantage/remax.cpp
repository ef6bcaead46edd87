#include <map>

#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/group.h"
#include "collimate/rlhf/types/baseline_sample.h"

namespace collimate::rlhf {
namespace {

Batch add_greedy_baseline(const Batch& rows, const AlgorithmOptions&) {
  rewards_by_group(rows);  // refuses rewards that are not finite
  std::map<int64_t, double> baselines;
  for (int64_t r = 0; r < rows.rows(); ++r)
    if (rows.get(kBaselineSample, r) != 0) baselines[rows.get(batch::kPromptUid, r)] = rows.get(batch::kReward, r);
  std::vector<int64_t> kept;
  std::vector<double> values;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const auto baseline = baselines.find(rows.get(batch::kPromptUid, r));
    if (rows.get(kBaselineSample, r) != 0 || baseline == baselines.end()) continue;
    kept.push_back(r);
    values.push_back(rows.get(batch::kReward, r) - baseline->second);
  }
  return with_row_advantages(rows.gather(kept), values);
}

}  // namespace

// "remax" (Li et al. 2023, ReMax; as in verl 0.10 with an outcome's reward) is a reward less the reward of a greedy
// sample of the prompt, which is the last of rollout.samples_per_prompt. Greedy samples are not trained, nor are
// samples of a prompt whose greedy sample has been dropped (reward.on_error).
AdvantageEntry remax_entry() {
  return {.name = "remax",
          .needs = {"uid", "prompt_uid", "trainable", "reward", kBaselineSample.name},
          .add = add_greedy_baseline,
          .greedy_baseline = true,
          .about =
              "ReMax: a reward less that of a greedy answer to the prompt, which is the last of its samples and is not "
              "trained."};
}

}  // namespace collimate::rlhf
