#pragma once

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

// ½ · mean over tokens of max((V - R)², (clip(V, V_old ± value_clip) - R)²), of (V - R)² without value_clip. Reads
// `values` (old) and `returns`. TRL's PPO adds it to the policy's loss with weight 0.1: use loss_weights.
LossEntry value_losses();

}  // namespace collimate::rlhf
