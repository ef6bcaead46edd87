#pragma once

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

// Losses on single answers that are marked desirable or not (Ethayarajh et al. 2024); names, formulas and defaults as
// in TRL 1.16's KTOTrainer. With c the log-ratio of a row against the reference and z the KL estimate: desirable
// 1 - σ(beta (c - z)), undesirable 1 - σ(beta (z - c)); mean over rows. apo_zero_unpaired has no z and σ(beta c) for
// the undesirable. Reads `reference_log_probs`, `desirable` and, with kto, `kl_estimate`: z, the same in every row of
// an update, taken without gradient over mismatched answers.
LossEntry kto_losses();
inline const Key<float> kDesirable{"desirable"};     // 1 or 0
inline const Key<float> kKlEstimate{"kl_estimate"};  // max(0, mean log-ratio of mismatched answers)

}  // namespace collimate::rlhf
