#pragma once

#include "collimate/cli/plan_options.h"

namespace collimate::cli {

// Prints what each weight link moves: of the placement that a config says, or, where that is for the planner to choose
// (`placement: auto`, or no config), of its choice. InputError as plan_request and recipe::make_placement.
void print_transfers(PlanOptions& options, bool json);

}  // namespace collimate::cli
