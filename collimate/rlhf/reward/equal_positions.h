#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {

// Scores a list of `produced` parts, views of the sample's completion, against one of `count` wanted parts: equal
// positions / max(count, parts produced), times `weight`, or `weight` if both lists are empty. `right(i)`, asked for
// each i < count in order, says whether part i is the wanted one. Each part is a step, whose reward is the change that
// the part makes to equal positions / max(count, parts so far).
Score equal_positions(const RewardSample& sample, const std::vector<std::string_view>& produced, size_t count,
                      double weight, const std::function<bool(size_t i)>& right);

}  // namespace collimate::rlhf
