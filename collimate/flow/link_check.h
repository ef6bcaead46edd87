#pragma once

#include <nlohmann/json.hpp>

#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"

namespace collimate::flow {

// Whether a worker of both of a link's models has the same part of both, where these may be one object there.
// InputError otherwise. Elsewhere both may have any layouts.
void check_link(const graph::WeightLink& link, const graph::Graph& graph, const graph::Placement& placement);

// Whether the functions of each model that a run calls (`calls`: calls_of) are cut over tp and pp alike, as a device
// has the weights of a model once. InputError otherwise.
void check_cuts(const graph::Placement& placement, const nlohmann::json& calls);

}  // namespace collimate::flow
