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

// Returns a function of a placement of the plan's graph. It gives what a run of this config would plan to take of its
// devices' memory, as the executor counts it against run.memory_budget, and may be called from any directory.
MemoryOf memory_of(const Config& config, const Plan& plan);

// Returns what a run plans each of its devices to hold at a time. `plan` is as make_placement left it. Throws
// InputError, as the run does, where run.memory_budget has no room for that, or where no files can be made for models
// that leave their device.
std::vector<flow::PlannedMemory> checked_memory(const Config& config, const Plan& plan,
                                                const graph::Placement& placement);

// Returns lines that say so for a person, one for all devices that plan the same.
std::vector<std::string> memory_lines(const Config& config, const std::vector<flow::PlannedMemory>& planned);

// Returns [{"device", "planned_bytes", "items": [{"item", "planned_bytes"}]}], with the names of summary.json.
nlohmann::ordered_json to_json(const std::vector<flow::PlannedMemory>& planned);

}  // namespace collimate::recipe
