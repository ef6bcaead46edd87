#pragma once

#include <concepts>
#include <map>
#include <string>
#include <vector>

#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/advantage/token_rewards.h"

namespace collimate::rlhf {

// Rewards by prompt_uid, in row order. InputError on one that is not finite, naming the row.
std::map<int64_t, std::vector<double>> rewards_by_group(const Batch& rows);
// Each row's number at its trainable tokens, as the column `advantages`.
Batch with_row_advantages(const Batch& rows, const std::vector<double>& values);
template <class F>
requires std::invocable<F, int64_t> Batch with_row_advantages(const Batch& rows, const F& value) {
  return with_row_advantages(rows, by_row(rows, [&](int64_t r) -> double { return value(r); }));
}
// The entry of an advantage that compares a reward with those of the prompt's samples: it reads lone_samples alone.
AdvantageEntry baseline_entry(const char* name, decltype(AdvantageEntry::add) add, const char* about);

struct Moments {
  double mean = 0;
  double std = 0;  // unbiased; 0 for one value
};
Moments moments(const std::vector<double>& values);
// The moments that a group's rewards are compared with. A sample alone in its group is compared with itself, or with
// mean 0 and std 1 where lone_samples is "reward" (verl).
Moments group_moments(const std::vector<double>& values, const AlgorithmOptions& options);
// Gives what scale_rewards divides by: the std of a group or of the batch plus advantage_epsilon, or 1.
double advantage_divisor(const AlgorithmOptions& options, const Moments& group, const Moments& batch);

struct GroupStatistics {
  double reward_mean = 0, reward_std = 0;  // over rows; mean over groups of the groups' std
  double zero_std_fraction = 0;            // groups whose rewards are all equal
};
GroupStatistics group_statistics(const Batch& rows);

}  // namespace collimate::rlhf
