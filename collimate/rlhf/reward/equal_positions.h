#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {

// Score of a list: its equal positions ÷ max(count, produced), times `weight`; 1 times it where nothing was wanted or
// made. `right(i)` says whether part i < count is what was wanted. Its steps are the parts, views of the sample's
// completion: each adds what it changes in the score up to it.
Score equal_positions(const RewardSample& sample, const std::vector<std::string_view>& produced, size_t count,
                      double weight, const std::function<bool(size_t i)>& right);

}  // namespace collimate::rlhf
