#pragma once

#include <nlohmann/json.hpp>

#include "collimate/batch/key.h"

namespace collimate::rlhf {

// A sample that was drawn in turns with an environment has {"turns": how many, "reward": the sum of all steps}, or
// {"turns", "error": why a step failed}.
inline const batch::Key<nlohmann::json> kEpisode{"episode"};

}  // namespace collimate::rlhf
