#pragma once

#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

// CPO (Xu et al. 2024; cpo, and cpo_hinge and cpo_ipo as TRL has them) and SimPO (Meng et al. 2024; simpo), plus
// cpo_alpha · NLL of the chosen answers, as in TRL's CPOTrainer, whose loss_type calls the first three sigmoid, hinge
// and ipo. No reference. cpo and cpo_hinge read sums of log-probs, cpo_ipo and simpo means; simpo:
// -log σ(beta (c - r) - simpo_gamma).
LossEntry cpo_losses();

}  // namespace collimate::rlhf
