#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"

namespace collimate::flow {

// Throws InputError unless every worker of both of a link's models has the same part of both, as these may be one
// object there. On other workers both may have any layouts.
void check_link(const graph::WeightLink& link, const graph::Graph& graph, const graph::Placement& placement);

// An axis along which two layouts cut weights unlike, and what each says of it.
struct UnlikeCut {
  std::string axis, first, second;
};
// Returns the first such axis of tp, pp, virtual_stages, stages and ep; nothing where both cut weights alike.
std::optional<UnlikeCut> unlike_cut(const graph::Layout& first, const graph::Layout& second);

// Throws InputError unless the functions of each model that a run calls (`calls`: calls_of) are cut over tp, pp (with
// its stages) and ep alike, as a device has the weights of a model once.
void check_cuts(const graph::Placement& placement, const nlohmann::json& calls);

}  // namespace collimate::flow
