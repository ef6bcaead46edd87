#pragma once

#include <string>

#include "collimate/graph/graph.h"

namespace collimate::plan {

// Returns the graph of an algorithm's iteration, with the models and functions that its recipe has: `ppo` (policy,
// policy_trainer, reference, value, reward) and `grpo` (policy, policy_trainer, reference; rules as rewards). Throws
// InputError for another name.
graph::Graph flow_of(const std::string& algorithm);

}  // namespace collimate::plan
