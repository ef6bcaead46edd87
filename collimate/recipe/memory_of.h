#pragma once

#include <functional>
#include <nlohmann/json.hpp>
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

// Gives what a run plans each of its devices to hold at a time. `plan` is that of the placement. InputError, as the run
// says it, where run.memory_budget has no room for that, or where files of models that leave their device cannot be
// made.
std::vector<flow::PlannedMemory> checked_memory(const Config& config, const Plan& plan,
                                                const graph::Placement& placement);

// Says so for a person: a line for all devices that plan the same.
std::vector<std::string> memory_lines(const Config& config, const std::vector<flow::PlannedMemory>& planned);

// [{"device", "planned_bytes", "items": [{"item", "planned_bytes"}]}], as summary.json names them.
nlohmann::ordered_json to_json(const std::vector<flow::PlannedMemory>& planned);

}  // namespace collimate::recipe
