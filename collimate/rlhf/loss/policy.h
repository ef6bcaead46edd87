#pragma once

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

// Policy-gradient loss = ratio level × surrogate × token weights × place of the KL; a type names a combination. Names,
// formulas and constants as in TRL 1.16's GRPOTrainer and, for ppo (mean over the update's tokens), as in PPOTrainer
// and verl. Reads `advantages`, `log_probs` as sampled, or `old_log_probs` where the batch has them, and, with beta >
// 0, `reference_log_probs`.
LossEntry policy_losses();

}  // namespace collimate::rlhf
