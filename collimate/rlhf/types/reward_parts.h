#pragma once

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// A sample has of each reward of the config's list what it gave, without its weight, NaN where it did not judge; and
// its weight.
inline const batch::Key<float> kRewardParts{.name = "reward_parts", .ragged = true};
inline const batch::Key<float> kRewardWeights{.name = "reward_weights", .ragged = true};

}  // namespace collimate::rlhf
