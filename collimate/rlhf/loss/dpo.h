#pragma once

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

// Preference losses against a frozen reference (Rafailov et al. 2023 and its kin); names and formulas as in TRL 1.16's
// DPOTrainer, except that label_smoothing with sigmoid is cDPO (Mitchell 2023), where TRL ignores it. Reads
// `reference_log_probs`. aot and aot_unpaired sort the pairs of a micro-batch, so there the micro-batch is part of the
// loss.
LossEntry dpo_losses();

}  // namespace collimate::rlhf
