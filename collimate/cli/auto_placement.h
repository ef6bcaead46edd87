#pragma once

#include <string>
#include <vector>

#include "collimate/recipe/config.h"

namespace collimate::cli {

// Puts the planner's choice for the config's devices in place of `placement: auto` or `{auto: machine.yaml}`, whose
// constants it uses then, and says it. Where the directory `run` has a run already, its placement is taken, so that it
// can go on. `path` and `sets` are those that the config was loaded from. InputError where nothing fits.
void choose_placement(recipe::Config& config, const std::string& path, const std::vector<std::string>& sets,
                      const std::string& run);

}  // namespace collimate::cli
