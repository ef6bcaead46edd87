#pragma once

#include <memory>

#include "collimate/flow/registry.h"

namespace collimate::rlhf {

// Advantages as host modules of one function each. Parameters of group_advantages: scale, epsilon, leave_one_out; of
// gae: gamma, lambda, kl_coefficient, whiten_rewards, missing_eos_penalty (null: none).
std::unique_ptr<flow::Module> group_advantages_module(const nlohmann::json& parameters);
std::unique_ptr<flow::Module> gae_module(const nlohmann::json& parameters);

}  // namespace collimate::rlhf
