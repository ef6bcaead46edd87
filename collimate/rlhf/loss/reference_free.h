#pragma once

#include <string>

#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

// Preference losses without a reference model; names, formulas and defaults as in TRL 1.16's ORPOTrainer and
// CPOTrainer. A pair is two adjacent rows, chosen then rejected. `trainable` marks the tokens that the likelihood term
// may read, `completion` (1 or 0 per token) those of the answer.
inline const Key<float> kCompletion{.name = "completion", .ragged = true};

// ORPO (Hong et al. 2024): NLL of the chosen prompt and answer - β · log σ(log odds ratio of the mean log-probs).
struct OrpoOptions {
  double beta = 0.1;
};
Loss orpo_loss(const OrpoOptions& options);

// CPO (Xu et al. 2024) and SimPO (Meng et al. 2024), plus cpo_alpha · NLL of the chosen answers. sigmoid and hinge read
// sums of log-probs; ipo and simpo means; simpo: -log σ(β(c - r) - γ).
struct CpoOptions {
  std::string loss_type = "sigmoid";  // sigmoid hinge ipo simpo
  double beta = 0.1;
  double label_smoothing = 0.0;  // of sigmoid and simpo
  double simpo_gamma = 0.5;
  double cpo_alpha = 1.0;
};
// InputError for an unknown loss_type, naming the known ones.
Loss cpo_loss(const CpoOptions& options);

}  // namespace collimate::rlhf
