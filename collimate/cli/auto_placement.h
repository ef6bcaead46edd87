#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/config.h"

namespace collimate::cli {

// Replaces `placement: auto` of the config, or `{auto: machine.yaml}`, by the planner's choice for the config's devices
// and prints the choice to stderr. The planner uses the constants of machine.yaml where it is named. If the directory
// `run` already holds a run, that run's placement is taken, so that it can go on. `path` and `sets` are those that the
// config was loaded from. Throws InputError when no placement fits.
void choose_placement(recipe::Config& config, const std::string& path, const std::vector<std::string>& sets,
                      const std::string& run);

}  // namespace collimate::cli
