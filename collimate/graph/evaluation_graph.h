#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "collimate/graph/graph.h"

namespace collimate::graph {

// An EvaluationGraph is a second graph over the models of a run, or over models of its own. The run's schedule takes it
// through the run's workers, once as a whole, after some iterations and before the next one goes on. It trains nothing
// and has no links.
struct EvaluationGraph {
  std::string name;  // "", or a name that no other evaluation of the run has
  Graph graph;
  int64_t rows = 1;
  int64_t group_size = 1;
  std::optional<int64_t> every = {};  // iterations, and after the last; 0: never; nothing: by the run's options
  std::optional<bool> first = {};     // before the first iteration too; nothing: by the run's options
  bool operator==(const EvaluationGraph&) const = default;
};

// Returns the graph with the models that only its evaluations have. The workers of a run are numbered over all of these
// models.
Graph with_models_of(Graph graph, std::span<const EvaluationGraph> evaluations);

}  // namespace collimate::graph
