#pragma once

#include <nlohmann/json.hpp>

#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"

namespace collimate::flow {

// Throws InputError unless every worker of both of a link's models has the same part of both, as these may be one
// object there. On other workers both may have any layouts.
void check_link(const graph::WeightLink& link, const graph::Graph& graph, const graph::Placement& placement);

// Throws InputError unless the functions of each model that a run calls (`calls`: calls_of) are cut over tp, pp (with
// its stages) and ep alike, as a device has the weights of a model once.
void check_cuts(const graph::Placement& placement, const nlohmann::json& calls);

}  // namespace collimate::flow
