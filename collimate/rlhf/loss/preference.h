#pragma once

#include <string>

#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

// Preference losses; names and formulas as in TRL 1.16's DPOTrainer and RewardTrainer. A pair is two adjacent rows,
// chosen then rejected, and is never split over micro-batches.
struct DpoOptions {
  std::string loss_type = "sigmoid";  // sigmoid hinge ipo robust sppo_hard apo_zero apo_down nca_pair sft
  double beta = 0.1;
  double label_smoothing = 0.0;  // with sigmoid: cDPO (Mitchell 2023); with robust: Chowdhury et al. 2024
};
// Reads `reference_log_probs`. InputError for an unknown loss_type, naming the known ones.
Loss dpo_loss(const DpoOptions& options);

// Bradley-Terry on the score of each row's last token: -log σ(chosen - rejected - margin) + c·(chosen + rejected)²,
// mean over pairs. The margin is the column "margin" of the chosen row where the batch has one.
struct RewardLossOptions {
  double center_rewards_coefficient = 0.0;
};
Loss reward_loss(const RewardLossOptions& options);
inline const Key<float> kMargin{"margin"};

}  // namespace collimate::rlhf
