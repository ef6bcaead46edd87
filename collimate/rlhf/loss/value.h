#pragma once

#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

struct ValueLossOptions {
  double clip_range = 0.2;   // 0: no clipping
  double coefficient = 1.0;  // TRL's PPO adds the value loss with 0.1
};

// ½ · mean over tokens of max((V - R)², (clip(V, V_old ± range) - R)²). Reads `values` (old) and `returns`.
Loss value_loss(const ValueLossOptions& options);

}  // namespace collimate::rlhf
