#pragma once

#include <string>

#include "collimate/batch/batch.h"

namespace collimate::rlhf {

// Advantages from rewards compared inside a sample group (rows of one prompt_uid; GRPO, Shao et al. 2024).
struct GroupAdvantageOptions {
  std::string scale = "group";  // divide by the std of the "group", of the "batch", or by nothing ("none", Dr. GRPO)
  double epsilon = 1e-4;        // added to the std (TRL 1e-4, verl 1e-6)
  bool leave_one_out = false;   // baseline: mean of the other samples (RLOO)
};

// Adds `advantages`: (reward - group mean) / (std + epsilon) at every trainable token, 0 elsewhere. The std is
// unbiased; a group of one has baseline 0 spread and advantage 0. InputError on a reward that is not finite, naming the
// row's uid.
Batch group_advantages(const Batch& rows, const GroupAdvantageOptions& options);

struct GroupStatistics {
  double reward_mean = 0, reward_std = 0;  // over rows; mean over groups of the groups' std
  double zero_std_fraction = 0;            // groups whose rewards are all equal
};
GroupStatistics group_statistics(const Batch& rows);

}  // namespace collimate::rlhf
