#pragma once

#include <memory>

#include "collimate/flow/module.h"

namespace collimate::rlhf {

// Returns the module of the host function "kl_estimate" of an iteration. It writes KTO's z = max(0, mean over the
// iteration's rows of the log-ratio of an answer to another prompt) into every row (Ethayarajh et al. 2024; TRL's
// KTOTrainer, where the mean is over a micro-batch).
std::unique_ptr<flow::Module> kl_estimate_module();

}  // namespace collimate::rlhf
