#pragma once

#include <string>

#include "collimate/cli/plan_request.h"
#include "collimate/plan/inputs/machine.h"
#include "collimate/recipe/config.h"

namespace collimate::cli {

// Returns a fingerprint of what decides how long a config's rows are: recipe, models, training data with its
// max_tokens, and rollout without the number of rows.
std::string lengths_key(const recipe::Config& config);

// Reads the file that `--constants` names; returns an empty Machine without one. Throws InputError as
// plan::parse_machine does.
collimate::plan::Machine machine_of(const PlanOptions& options);

// Takes lengths that the options do not give from `machine`, if it was calibrated with the request's config, and says
// so on stderr. Says there, too, that lengths of another config are not used.
void use_lengths(const collimate::plan::Machine& machine, const PlanOptions& options, PlanRequest& made);

}  // namespace collimate::cli
