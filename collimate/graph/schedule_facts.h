#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/graph/schedule.h"

// A Schedule knows the facts before the first event. Internal to schedule*.cpp.
namespace collimate::graph {

struct NodeFacts {
  const FunctionSpec* spec = nullptr;
  int position = 0;            // in `ScheduleFacts::order`
  std::vector<int> producers;  // nodes that make its inputs
  std::vector<int> consumers;
  std::vector<int> after;
  std::vector<Replica> replicas;
  std::vector<std::string> models;  // its own and its services
  bool whole = false;               // iteration-granular: one call per iteration, on replica 0
  bool group = false;
  bool decides = false;  // on the way to a filter: the filter itself or above it
  bool holds = false;    // kept open for refilled rows until no filter can ask for more
  bool writes = false;   // its model's weights
};

struct ScheduleFacts {
  Graph graph;
  Placement placement;
  ScheduleOptions options;  // with staleness resolved
  std::vector<NodeFacts> nodes;
  std::vector<int> order;                            // topological, nodes that decide first
  std::vector<int> filters;                          // nodes that drop and refill
  std::map<std::string, std::vector<int>> workers;   // of each model
  std::vector<std::vector<int>> nodes_on;            // worker → nodes that use it, in order
  std::vector<std::vector<std::string>> swapped_on;  // worker → models with residency swap
  uint64_t fingerprint = 0;                          // of graph, rows and group size
  uint64_t placed = 0;                               // of the placement

  const NodeFacts& node(int index) const { return base::at(nodes, index); }
  bool swapped(const std::string& model) const;
};

// Validates everything and works the facts out.
ScheduleFacts make_facts(const Graph& graph, const Placement& placement, const ScheduleOptions& options);

}  // namespace collimate::graph
