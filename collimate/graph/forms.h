#pragma once

#include <string>

#include "collimate/graph/placement.h"

namespace collimate::graph {

// This file has the placements that have names, beside flattening() (placement.h).

// Places the models that train on the first `training_devices` and all others on the rest. Throws InputError when
// either side has no device.
Placement separation(const Graph& graph, int devices, int training_devices, std::string kind = "cpu");
// Places the models that generate or train on all devices, and divides the devices among the frozen models, side by
// side. Throws InputError when there are fewer devices than frozen models.
Placement interleaving(const Graph& graph, int devices, std::string kind = "cpu");

}  // namespace collimate::graph
