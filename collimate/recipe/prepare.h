#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/graph/placement.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// The recipe's plan. InputError when the config leaves out what the recipe needs, or sets an option that nothing in it
// reads.
Plan complete_plan(const Config& config, const flow::Registry& registry);

// Sets run.iterations from run.epochs by the examples that data.train has, and the plan for these. Where both are set
// the one from the command line counts; InputError where that is both or none and they differ.
void settle_iterations(Config& config, const flow::Registry& registry, const RunData& data, Plan& plan);

// The placement that the config names, writes out or keeps in a file, validated against the plan's graph and `devices`,
// if that is set, with keep_frozen_apart.
graph::Placement make_placement(const Config& config, Plan& plan);

// A module of the plan that shares no device with the trainer of its weights becomes one of frozen weights: it holds
// neither gradient nor optimizer of them.
void keep_frozen_apart(const graph::Placement& placement, Plan& plan);

// The resolved config as YAML, less the options that nothing in the plan reads (recipe/unread.h).
std::string resolved_text(const Config& config, const Plan& plan);

// Threads of each device's worker.
int threads_of(const Config& config, const graph::Placement& placement);
int threads_of(int64_t threads, const graph::Placement& placement);  // run.threads

}  // namespace collimate::recipe
