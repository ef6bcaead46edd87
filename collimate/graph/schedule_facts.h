#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/graph/schedule.h"
#include "collimate/graph/schedule_swaps.h"

// NodeFacts and the other structs of this file are facts that a Schedule knows before the first event. Internal to
// schedule*.cpp.
namespace collimate::graph {

struct NodeFacts {
  const FunctionSpec* spec = nullptr;
  int position = 0;            // in `ScheduleFacts::order`
  std::vector<int> producers;  // nodes that make the inputs of this one
  std::vector<int> consumers;
  std::vector<int> after;
  std::vector<Replica> replicas;
  std::vector<std::string> models;  // the node's own model, then its services
  bool whole = false;               // iteration-granular: one call per iteration, on replica 0
  bool group = false;
  bool decides = false;  // a filter, or a node above one
  bool holds = false;    // its tasks stay open for refilled rows until no filter can ask for more
  bool writes = false;   // writes the weights of its model
};

// A GraphFacts describes the run's own graph or the graph of one of its evaluations.
struct GraphFacts {
  Graph graph;  // with the models of all graphs
  int64_t rows = 1;
  int64_t group_size = 1;
  int number = 0;  // as Task::graph
  std::vector<NodeFacts> nodes;
  std::vector<int> order;                  // topological, nodes that decide first
  std::vector<int> filters;                // nodes that drop rows and have them refilled
  std::vector<std::vector<int>> nodes_on;  // worker → nodes that use it, in order

  const NodeFacts& node(int index) const { return base::at(nodes, index); }
};

// An EvaluationTimes says when an evaluation takes place.
struct EvaluationTimes {
  std::string name;
  int64_t every = 0;
  bool first = false;
};

// A ScheduleFacts describes the run's own graph and what all of its graphs share.
struct ScheduleFacts : GraphFacts {
  Placement placement;
  ScheduleOptions options;  // with staleness resolved
  std::vector<GraphFacts> evaluations;
  std::vector<EvaluationTimes> times;                // of each evaluation
  std::map<std::string, std::vector<int>> workers;   // of each model
  std::vector<std::vector<std::string>> swapped_on;  // worker → models with residency swap
  std::vector<std::vector<std::string>> always_on;   // worker → the other models on it
  DeviceMemory memory;
  uint64_t fingerprint = 0;  // of the run's own graph, rows and group size
  uint64_t placed = 0;       // of the placement without residencies

  // These return the facts of a graph by its number, and of a task's node.
  const GraphFacts& of(int graph) const { return graph == 0 ? *this : base::at(evaluations, graph - 1); }
  const NodeFacts& node(const Task& task) const { return of(task.graph).node(task.node); }
  using GraphFacts::node;
  Swaps::Room room(int worker) const {
    return {worker, base::at(always_on, worker), base::at(swapped_on, worker), memory};
  }
  // Returns the least version, counted in trainings, that the weights brought by links must have for an iteration; with
  // exact_versions it is the exact version.
  int64_t version_for(int64_t iteration) const;
  // Returns the models with residency swap, in order of their names.
  std::vector<std::string> swapped() const;
  // Returns those of these models that have something to save.
  std::vector<std::string> saved_in_turn() const;
  std::string describe(const Task& task) const;
};

// Validates everything and derives the facts. Throws InputError.
ScheduleFacts make_facts(const Graph& graph, const Placement& placement, const ScheduleOptions& options,
                         std::span<const EvaluationGraph> evaluations = {}, const DeviceMemory& memory = {});

}  // namespace collimate::graph
