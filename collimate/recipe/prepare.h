#pragma once

#include <string>

#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Returns the recipe's plan. Throws InputError when the config leaves out what the recipe needs, or sets an option that
// nothing in the plan reads.
Plan complete_plan(const Config& config, const flow::Registry& registry);

// Sets run.iterations from run.epochs by the examples that data.train has, and makes the plan for these, with the
// iterations that have fewer rows. Where both are set the one from the command line counts. Throws InputError where
// both are from there, or neither, and they differ, and for a data.last_batch with which the losses cannot work.
void settle_iterations(Config& config, const flow::Registry& registry, const RunData& data, Plan& plan);

// Returns the resolved config as YAML, without options at their defaults that nothing in the plan reads
// (recipe/unread.h).
std::string resolved_text(const Config& config, const Plan& plan);

}  // namespace collimate::recipe
