#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/graph/placement.h"
#include "collimate/shape/transfer_plan.h"

namespace collimate::graph {

// Returns the part of a model's weights that each of its workers has, in the order of workers_of, by the layouts of the
// functions that are called of it, which must agree in tp, pp, ep and stages. The ranks of a function with ZeRO's stage
// 3 keep shares.
std::vector<shape::WeightRank> weight_ranks(const Graph& graph, const Placement& placement, const std::string& model,
                                            const std::vector<std::string>& functions);

// A LinkEnds holds both ends of a link.
struct LinkEnds {
  std::vector<shape::WeightRank> sources, destinations;
  // Says whether a worker of the destination has the same part of the source too, so that nothing has to be sent to it.
  bool is_here(int worker) const;
};
// Returns the ends of a link. `calls` is an object with a list of functions by model; a model that it does not name is
// not called.
LinkEnds link_ends(const Graph& graph, const Placement& placement, const std::string& source,
                   const std::string& destination, const nlohmann::json& calls);

}  // namespace collimate::graph
