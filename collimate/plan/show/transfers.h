#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"
#include "collimate/shape/transfer_plan.h"

namespace collimate::plan {

// LinkedWeights are the weights of a model, of which links carry some.
struct LinkedWeights {
  shape::ModelShape shape;
  std::vector<shape::ParamSpec> params;
  std::function<bool(const shape::ParamSpec&)> is_carried;
  int64_t value_bytes = 4;  // of a value while it moves
};
LinkedWeights all_weights(const shape::ModelShape& shape, int64_t value_bytes);

// A LinkTransfer is what one link moves after each training that it follows.
struct LinkTransfer {
  graph::WeightLink link;
  std::vector<int> here;  // workers that have the same part of both models
  shape::TransferPlan plan;
  int64_t value_bytes = 4;
};

// Returns the transfer of each link of the graph. `calls` has the functions that are called, by model. Throws
// InputError for a link whose source is not among the weights.
std::vector<LinkTransfer> link_transfers(const graph::Graph& graph, const graph::Placement& placement,
                                         const nlohmann::json& calls,
                                         const std::map<std::string, LinkedWeights>& weights);
// Returns the functions that a graph's nodes call, by model.
nlohmann::json calls_of_nodes(const graph::Graph& graph);

// Lists for a person what each link moves, in lines of at most so many characters.
std::string transfers_text(const std::vector<LinkTransfer>& transfers, int columns);
nlohmann::ordered_json transfers_json(const std::vector<LinkTransfer>& transfers);

}  // namespace collimate::plan
