#pragma once

#include <optional>
#include <string>

#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

// Weights of VESPO: φ(w) = e^λ · w^k · e^{-λw} of a sequence's ratio w, by the sign of its advantage.
struct VespoOptions {
  double k_positive = 2.0;
  double lambda_positive = 3.0;
  double k_negative = 3.0;
  double lambda_negative = 2.0;
};

// Policy-gradient loss = ratio level × surrogate × token weights × place of the KL. `loss_type` names a combination;
// names, formulas and defaults as in TRL 1.16's GRPOTrainer and, for ppo, PPOTrainer.
struct PolicyLossOptions {
  std::string loss_type = "grpo";                   // grpo bnpo dr_grpo dapo cispo sapo luspo vespo ppo
  std::string importance_sampling_level = "token";  // token, sequence (GSPO), sequence_token (GSPO-token)
  double epsilon = 0.2;
  std::optional<double> epsilon_high;   // default: epsilon; with cispo the absolute cap of the ratio
  std::optional<double> delta;          // upper bound of the ratio itself (two-sided clipping)
  double beta = 0.0;                    // weight of the KL against the reference in the loss
  bool use_bias_correction_kl = false;  // KL times the ratio
  double entropy_coefficient = 0.0;     // bonus: mean entropy of the trained tokens
  double top_entropy_quantile = 1.0;    // below 1: only the tokens of highest entropy of each micro-batch are trained
  double sapo_temperature_positive = 1.0;
  double sapo_temperature_negative = 1.05;
  int64_t max_completion_tokens = 0;  // divisor of dr_grpo
  double token_normalizer = 0.0;      // divisor of dapo, cispo and vespo; 0: the update's trainable tokens
  VespoOptions vespo;
};

// Reads `advantages`, `old_log_probs` (or `log_probs`, as sampled, where the batch has no old ones) and, with beta > 0,
// `reference_log_probs`. InputError for an unknown loss_type, naming the known ones.
Loss policy_loss(const PolicyLossOptions& options);

}  // namespace collimate::rlhf
