#pragma once

#include <memory>

#include "collimate/flow/module.h"

namespace collimate::rlhf {

// Returns the module of the host function "keep" of sample groups. It drops groups whose samples all have the same
// reward, from which nothing is learned (dynamic sampling of DAPO, Yu et al. 2025). The schedule draws new prompts in
// their place.
std::unique_ptr<flow::Module> mixed_groups_module();

}  // namespace collimate::rlhf
