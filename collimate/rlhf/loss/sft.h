#pragma once

#include <string>

#include "collimate/rlhf/types/loss.h"

namespace collimate::rlhf {

// Next-token losses over the trainable tokens, divided by the global tokens; names as in TRL's SFTTrainer. nll:
// -Σ log p. dft: -Σ p · log p with p held constant (Wu et al. 2025).
struct SftOptions {
  std::string loss_type = "nll";
};
Loss sft_loss(const SftOptions& options = {});

}  // namespace collimate::rlhf
