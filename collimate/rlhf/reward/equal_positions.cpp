#include "collimate/rlhf/reward/equal_positions.h"

#include <algorithm>
#include <utility>

namespace collimate::rlhf {

Score equal_positions(const RewardSample& sample, const std::vector<std::string_view>& produced, size_t count,
                      double weight, const std::function<bool(size_t i)>& right) {
  std::vector<StepReward> steps;
  double score = produced.empty() && count == 0 ? 1.0 : 0.0;
  size_t equal = 0;
  for (size_t i = 0; i < produced.size(); ++i) {
    equal += i < count && right(i) ? 1 : 0;
    const double before =
        std::exchange(score, static_cast<double>(equal) / static_cast<double>(std::max(count, i + 1)));
    steps.push_back({static_cast<size_t>(produced[i].end() - sample.completion.data()), score - before});
  }
  return {score * weight, std::move(steps)};
}

}  // namespace collimate::rlhf
