#pragma once

#include <concepts>
#include <map>
#include <string>
#include <vector>

#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/advantage/token_rewards.h"

namespace collimate::rlhf {

// Returns the rewards of each prompt's samples by prompt_uid, in row order. Throws InputError, naming the row, when a
// reward is not finite.
std::map<int64_t, std::vector<double>> rewards_by_group(const Batch& rows);
// Returns the rows with a column `advantages`, which repeats values[r] at each trainable token of row r.
Batch with_row_advantages(const Batch& rows, const std::vector<double>& values);
template <class F>
requires std::invocable<F, int64_t> Batch with_row_advantages(const Batch& rows, const F& value) {
  return with_row_advantages(rows, by_row(rows, [&](int64_t r) -> double { return value(r); }));
}
// Returns the entry of an advantage that compares a reward with those of the prompt's samples and reads no option but
// lone_samples.
AdvantageEntry baseline_entry(const char* name, decltype(AdvantageEntry::add) add, const char* about);

struct Moments {
  double mean = 0;
  double std = 0;  // unbiased; 0 for one value
};
Moments moments(const std::vector<double>& values);
// Returns the moments with which the rewards of a group are compared. A sample alone in its group is compared with
// itself, or with mean 0 and std 1 if lone_samples is "reward" (as in verl).
Moments group_moments(const std::vector<double>& values, const AlgorithmOptions& options);
// Returns the divisor that scale_rewards asks for: the std of the group or of the batch, plus advantage_epsilon, or 1.
// A divisor of 0 becomes 1.
double advantage_divisor(const AlgorithmOptions& options, const Moments& group, const Moments& batch);

struct GroupStatistics {
  double reward_mean = 0, reward_std = 0;  // mean over rows; mean over groups of each group's std
  double zero_std_fraction = 0;            // share of the groups whose rewards are all equal
};
GroupStatistics group_statistics(const Batch& rows);

}  // namespace collimate::rlhf
