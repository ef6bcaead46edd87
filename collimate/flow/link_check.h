#pragma once

#include <nlohmann/json.hpp>

#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"

namespace collimate::flow {

// Whether the link's transfers are right: a worker of both models copies what it has of one to the other, so the two
// must be the same part of the weights there; any other worker gets the source's first worker's, so all must be whole.
// InputError otherwise.
void check_link(const graph::WeightLink& link, const graph::Graph& graph, const graph::Placement& placement);

// Whether the functions of each model that a run calls (`calls`: calls_of) are cut over tp and pp alike, as a device
// has the weights of a model once. InputError otherwise.
void check_cuts(const graph::Placement& placement, const nlohmann::json& calls);

}  // namespace collimate::flow
