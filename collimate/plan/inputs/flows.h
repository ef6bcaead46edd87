#pragma once

#include <string>

#include "collimate/graph/graph.h"

namespace collimate::plan {

// The iteration of an algorithm with the models and functions that its recipe has: `ppo` (policy, policy_trainer,
// reference, value, reward) and `grpo` (policy, policy_trainer, reference; rules as rewards). InputError on another
// name.
graph::Graph flow_of(const std::string& algorithm);

}  // namespace collimate::plan
