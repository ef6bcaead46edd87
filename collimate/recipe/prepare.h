#pragma once

#include <string>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// The recipe's plan. InputError when the config leaves out what the recipe needs, or sets an option that nothing in it
// reads.
Plan complete_plan(const Config& config, const flow::Registry& registry);

// Sets run.iterations from run.epochs by the examples that data.train has, and the plan for these. Where both are set
// the one from the command line counts; InputError where that is both or none and they differ.
void settle_iterations(Config& config, const flow::Registry& registry, const RunData& data, Plan& plan);

// The resolved config as YAML, less the options that nothing in the plan reads (recipe/unread.h).
std::string resolved_text(const Config& config, const Plan& plan);

}  // namespace collimate::recipe
