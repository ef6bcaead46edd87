#pragma once

#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

// Next-token cross-entropy over the trainable tokens: -Σ log p / global tokens (TRL's SFTTrainer, `loss_type` nll).
Loss sft_loss();

}  // namespace collimate::rlhf
