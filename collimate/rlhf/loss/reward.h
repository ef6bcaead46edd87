#pragma once

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

// Bradley-Terry on the score of each row's last token: -log σ(chosen - rejected - margin) +
// center_rewards_coefficient · (chosen + rejected)², mean over pairs, as in TRL's RewardTrainer. The margin is kMargin
// of the chosen row, 0 in a batch without it.
LossEntry reward_losses();

}  // namespace collimate::rlhf
