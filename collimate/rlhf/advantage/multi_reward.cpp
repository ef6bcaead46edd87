#include <cmath>
#include <map>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/advantage/group.h"
#include "collimate/rlhf/types/reward_parts.h"

namespace collimate::rlhf {
namespace {

double standard_score(double value, const Moments& moments, double epsilon) {
  const double divisor = moments.std + epsilon;
  return divisor > 0 ? (value - moments.mean) / divisor : 0.0;
}

// By prompt and index of the reward: the values that this reward gave to the prompt's samples.
using Parts = std::map<std::pair<int64_t, size_t>, std::vector<double>>;

Parts parts_of(const Batch& rows) {
  Parts parts;
  for (int64_t r = 0; r < rows.rows(); ++r)
    for (size_t k = 0; const float part : rows.row(kRewardParts, r)) {
      if (!std::isnan(part)) parts[{rows.get(batch::kPromptUid, r), k}].push_back(part);
      ++k;
    }
  return parts;
}

// Returns, for row r, Σ over rewards of weight · standard score among the prompt's samples.
double weighted_scores(const Batch& rows, int64_t r, const std::map<Parts::key_type, Moments>& moments,
                       double epsilon) {
  const auto parts = rows.row(kRewardParts, r), weights = rows.row(kRewardWeights, r);
  double sum = 0;
  for (size_t k = 0; k < parts.size(); ++k)
    if (!std::isnan(parts[k]))
      sum += base::at(weights, k) * standard_score(parts[k], moments.at({rows.get(batch::kPromptUid, r), k}), epsilon);
  return sum;
}

Batch add_decoupled(const Batch& rows, const AlgorithmOptions& options) {
  rewards_by_group(rows);  // refuses rewards that are not finite
  std::map<Parts::key_type, Moments> of_parts;
  for (const auto& [place, values] : parts_of(rows)) of_parts[place] = moments(values);
  std::vector<double> values =
      by_row(rows, [&](int64_t r) { return weighted_scores(rows, r, of_parts, options.advantage_epsilon); });
  const Moments all = moments(values);
  for (double& value : values) value = standard_score(value, all, options.advantage_epsilon);
  return with_row_advantages(rows, values);
}

}  // namespace

// "gdpo" (Liu et al. 2026, Group reward-Decoupled Normalization Policy Optimization; TRL's normalize_then_sum) takes
// the standard score of each reward of the list among the prompt's samples, adds these up by weight, and takes the
// standard score of the sum over the iteration. Standard deviations are unbiased, with advantage_epsilon added. A
// reward that did not judge a sample adds nothing. Rewards with a large range do not drown the others, as they do in a
// plain sum.
AdvantageEntry multi_reward_entry() {
  return {.name = "gdpo",
          .needs = {"uid", "prompt_uid", "trainable", "reward", kRewardParts.name, kRewardWeights.name},
          .options = {"advantage_epsilon"},
          .add = add_decoupled,
          .reads_parts = true,
          .about =
              "GDPO: each reward of the list is standardised among the prompt's samples before they are added up by "
              "their weights."};
}

}  // namespace collimate::rlhf
