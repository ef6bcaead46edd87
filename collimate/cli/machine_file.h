#pragma once

#include <string>

#include "collimate/cli/plan_request.h"
#include "collimate/plan/inputs/machine.h"
#include "collimate/recipe/config.h"

namespace collimate::cli {

// Fingerprint of what decides how long a config's rows are: models, training data and rollout, less the number of rows.
std::string lengths_key(const recipe::Config& config);

// Reads the file that `--constants` names; nothing without one. InputError as plan::parse_machine.
collimate::plan::Machine machine_of(const PlanOptions& options);

// Takes the lengths of a file that was calibrated with the request's config, where the options give none, and says so
// on stderr; also that those of another config are not used.
void use_lengths(const collimate::plan::Machine& machine, const PlanOptions& options, PlanRequest& made);

}  // namespace collimate::cli
