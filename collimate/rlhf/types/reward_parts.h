#pragma once

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// Each sample has, per reward of the config's list, the reward's value without its weight, or NaN if that reward did
// not judge the sample, and the reward's weight.
inline const batch::Key<float> kRewardParts{.name = "reward_parts", .ragged = true};
inline const batch::Key<float> kRewardWeights{.name = "reward_weights", .ragged = true};

}  // namespace collimate::rlhf
