#pragma once

#include <memory>

#include "collimate/flow/module.h"

namespace collimate::rlhf {

// The host function "kl_estimate" of an iteration: KTO's z = max(0, mean over rows of the log-ratio of an answer to
// another prompt), the same in every row (Ethayarajh et al. 2024; TRL's KTOTrainer, of a micro-batch there).
std::unique_ptr<flow::Module> kl_estimate_module();

}  // namespace collimate::rlhf
