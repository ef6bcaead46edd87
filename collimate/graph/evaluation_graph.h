#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "collimate/graph/graph.h"

namespace collimate::graph {

// A second graph over the models of a run, or over models of its own. The run's schedule takes it through the run's
// workers, once as a whole, after some iterations and before the next one goes on. It trains nothing and has no links.
struct EvaluationGraph {
  std::string name;  // "" or any that no other one of the run has
  Graph graph;
  int64_t rows = 1;
  int64_t group_size = 1;
  std::optional<int64_t> every = {};  // iterations, and after the last one; 0 never; nothing: as the run's options say
  std::optional<bool> first = {};     // before the first iteration too; nothing: as the run's options say
  bool operator==(const EvaluationGraph&) const = default;
};

// The graph with the models that only its evaluations have: those of a run's workers are numbered over all of them.
Graph with_models_of(Graph graph, std::span<const EvaluationGraph> evaluations);

}  // namespace collimate::graph
