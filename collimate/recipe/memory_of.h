#pragma once

#include <functional>
#include <vector>

#include "collimate/flow/planned_memory.h"
#include "collimate/graph/placement.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

using MemoryOf = std::function<std::vector<flow::PlannedMemory>(const graph::Placement&)>;

// Gives what a run of this config would plan to take of its devices' memory under a placement of the plan's graph, as
// the executor counts it against run.memory_budget. Holds from any directory.
MemoryOf memory_of(const Config& config, const Plan& plan);

}  // namespace collimate::recipe
