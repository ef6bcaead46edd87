#pragma once

#include "collimate/cli/plan_options.h"

namespace collimate::cli {

// Prints what each weight link moves in the placement that the config says. With `placement: auto`, with a cluster or a
// form in the options, or without a config, the planner chooses the placement. Throws InputError as plan_request and
// recipe::make_placement do.
void print_transfers(PlanOptions& options, bool json);

}  // namespace collimate::cli
