#pragma once

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

// Next-token losses over the trainable tokens, divided by the global tokens; names as in TRL's SFTTrainer. nll:
// -Σ log p. dft: -Σ p · log p with p held constant (Wu et al. 2025).
LossEntry sft_losses();

}  // namespace collimate::rlhf
