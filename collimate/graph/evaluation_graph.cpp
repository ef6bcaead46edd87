#include "collimate/graph/evaluation_graph.h"

namespace collimate::graph {

Graph with_models_of(Graph graph, std::span<const EvaluationGraph> evaluations) {
  for (const EvaluationGraph& evaluation : evaluations)
    graph.models.insert(evaluation.graph.models.begin(), evaluation.graph.models.end());
  return graph;
}

}  // namespace collimate::graph
