#pragma once

#include <string>
#include <vector>

#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

// Preference losses; names and formulas as in TRL 1.16's DPOTrainer and RewardTrainer. A pair is two adjacent rows,
// chosen then rejected, and is never split over micro-batches.
struct DpoOptions {
  // sigmoid hinge ipo robust exo_pair sppo_hard apo_zero apo_down nca_pair bco_pair discopop sft
  std::string loss_type = "sigmoid";
  double beta = 0.1;
  double label_smoothing = 0.0;  // with sigmoid: cDPO (Mitchell 2023); with robust: Chowdhury et al. 2024
  // Divergence whose derivative turns a log-ratio into a score (Wang et al. 2024): reverse_kl forward_kl js_divergence
  // alpha_divergence.
  std::string f_divergence = "reverse_kl";
  double alpha = 0.5;          // of alpha_divergence
  double discopop_tau = 0.05;  // temperature of discopop's blend
};
// Reads `reference_log_probs`. InputError for an unknown loss_type, naming the known ones.
Loss dpo_loss(const DpoOptions& options);

// Σ weight · loss over losses that read the same rows; needs and columns are those of all of them.
Loss weighted_sum(std::vector<Loss> losses, std::vector<double> weights);

// Bradley-Terry on the score of each row's last token: -log σ(chosen - rejected - margin) + c·(chosen + rejected)²,
// mean over pairs. The margin is the column "margin" of the chosen row where the batch has one.
struct RewardLossOptions {
  double center_rewards_coefficient = 0.0;
};
Loss reward_loss(const RewardLossOptions& options);
inline const Key<float> kMargin{"margin"};

}  // namespace collimate::rlhf
