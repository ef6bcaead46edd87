#pragma once

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

// ORPO (Hong et al. 2024), as in TRL's ORPOTrainer: NLL of the chosen prompt and answer - beta · log σ(log odds ratio
// of the answers' mean log-probs). No reference. `trainable` marks the prompt too; the answers are where the column
// `completion` is 1.
LossEntry orpo_losses();

}  // namespace collimate::rlhf
