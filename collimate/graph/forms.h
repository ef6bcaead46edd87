#pragma once

#include <string>

#include "collimate/graph/placement.h"

namespace collimate::graph {

// Placements by name, beside flattening() (placement.h).

// Models that train on the first `training_devices`, all others on the rest. InputError when either side is empty.
Placement separation(const Graph& graph, int devices, int training_devices, std::string kind = "cpu");
// Models that generate or train on all devices; the frozen ones share them out side by side.
Placement interleaving(const Graph& graph, int devices, std::string kind = "cpu");

}  // namespace collimate::graph
