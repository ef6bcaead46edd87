#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collimate/flow/planned_memory.h"
#include "collimate/graph/placement.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

using MemoryOf = std::function<std::vector<flow::PlannedMemory>(const graph::Placement&)>;

// Gives what a run of this config would plan to take of its devices' memory under a placement of the plan's graph, as
// the executor counts it against run.memory_budget. Holds from any directory.
MemoryOf memory_of(const Config& config, const Plan& plan);

// Says of each device whose models take turns what it plans to hold at a time; nothing where none do. `plan` is that of
// the placement. InputError where run.memory_budget has no room for what is used together, which names the items.
std::vector<std::string> turn_lines(const Config& config, const Plan& plan, const graph::Placement& placement);

}  // namespace collimate::recipe
