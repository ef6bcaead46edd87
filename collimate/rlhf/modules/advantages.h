#pragma once

#include <memory>

#include "collimate/flow/registry.h"
#include "collimate/rlhf/advantage/list.h"

namespace collimate::rlhf {

// An entry of the list of advantages as a host module of one function "advantages". Parameters: the section
// `algorithm`, of which missing_eos_penalty and shuffle_rewards change the rewards before.
std::unique_ptr<flow::Module> advantage_module(const AdvantageEntry& entry, const nlohmann::json& parameters);
// Options that every such module reads.
inline const std::vector<std::string> kRewardOptions = {"advantage", "missing_eos_penalty", "shuffle_rewards"};

}  // namespace collimate::rlhf
