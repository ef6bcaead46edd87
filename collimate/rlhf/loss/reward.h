#pragma once

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

// Bradley-Terry on the score of each row's last token: -log σ(chosen - rejected - margin) +
// center_rewards_coefficient · (chosen + rejected)², mean over pairs, as in TRL's RewardTrainer. The margin is the
// column "margin" of the chosen row where the batch has one.
LossEntry reward_losses();
inline const Key<float> kMargin{"margin"};

}  // namespace collimate::rlhf
