#pragma once

#include <string>

#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

// Losses on single answers that are marked desirable or not (Ethayarajh et al. 2024); names, formulas and defaults as
// in TRL 1.16's KTOTrainer. With c the log-ratio of a row against the reference and z the KL estimate: desirable
// 1 - σ(β(c - z)), undesirable 1 - σ(β(z - c)); mean over rows.
struct KtoOptions {
  std::string loss_type = "kto";  // kto, apo_zero_unpaired
  double beta = 0.1;
  double desirable_weight = 1.0;
  double undesirable_weight = 1.0;
};
// Reads `reference_log_probs`, `desirable` and, with kto, `kl_estimate`: z, the same in every row of an update, taken
// without gradient over mismatched answers. InputError for an unknown loss_type, naming the known ones.
Loss kto_loss(const KtoOptions& options);
inline const Key<float> kDesirable{"desirable"};     // 1 or 0
inline const Key<float> kKlEstimate{"kl_estimate"};  // max(0, mean log-ratio of mismatched answers)

}  // namespace collimate::rlhf
