#pragma once

#include <memory>

#include "collimate/rlhf/reward/reward.h"
#include "collimate/rlhf/reward/reward_section.h"

namespace collimate::rlhf {

// Makes the reward that an environment gave a sample while it was drawn (RewardSample::episode). A sample that was not
// drawn in turns, as in a trial before a run, is taken for one turn: an environment begins and is asked for one step.
std::unique_ptr<Reward> gym_reward(const GymSection& options);

}  // namespace collimate::rlhf
