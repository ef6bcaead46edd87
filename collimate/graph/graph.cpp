#include "collimate/graph/graph.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/edit_distance.h"
#include "collimate/graph/json_fields.h"

namespace collimate::graph {

int Graph::node_index(std::string_view id) const {
  auto found = std::find_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.id == id; });
  return found == nodes.end() ? -1 : static_cast<int>(found - nodes.begin());
}

int Graph::producer(std::string_view value) const {
  for (size_t i = 0; i < nodes.size(); ++i)
    if (std::find(nodes[i].outputs.begin(), nodes[i].outputs.end(), value) != nodes[i].outputs.end())
      return static_cast<int>(i);
  return -1;
}

const FunctionSpec* Graph::find_function(std::string_view model, std::string_view function) const {
  auto found = models.find(std::string(model));
  if (found == models.end()) return nullptr;
  for (const FunctionSpec& spec : found->second.functions)
    if (spec.name == function) return &spec;
  return nullptr;
}

const FunctionSpec& Graph::spec(int index) const {
  const Node& called = node(index);
  const FunctionSpec* found = find_function(called.model, called.function);
  if (found == nullptr) {
    std::vector<std::string> known;
    if (auto model = models.find(called.model); model != models.end())
      for (const FunctionSpec& other : model->second.functions) known.push_back(other.name);
    const std::string near = base::nearest(called.function, known);
    throw base::InputError(base::expectation("graph." + called.id,
                                             "a function of " + called.model + " out of " + join(known),
                                             "'" + called.function + "'", near.empty() ? "" : "'" + near + "'"));
  }
  return *found;
}

bool Graph::trains(std::string_view model) const {
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].model == model && spec(static_cast<int>(i)).writes_weights) return true;
  return false;
}

namespace {

// Returns the nodes that must come before a node: producers of its inputs and its control dependencies.
std::vector<int> predecessors(const Graph& graph, const Node& node) {
  std::vector<int> made;
  for (const std::string& value : node.inputs) made.push_back(graph.producer(value));
  for (const std::string& id : node.after) made.push_back(graph.node_index(id));
  made.erase(std::remove(made.begin(), made.end(), -1), made.end());
  return made;
}

}  // namespace

std::vector<int> topological_order(const Graph& graph) {
  std::vector<int> order;
  std::vector<bool> placed(graph.nodes.size(), false);
  auto ready = [&](size_t i) {
    if (placed[i]) return false;
    std::vector<int> before = predecessors(graph, graph.nodes[i]);
    return std::all_of(before.begin(), before.end(), [&](int p) { return base::at(placed, p); });
  };
  while (order.size() < graph.nodes.size()) {
    size_t next = 0;
    while (next < graph.nodes.size() && !ready(next)) ++next;
    if (next == graph.nodes.size()) break;
    placed[next] = true;
    order.push_back(static_cast<int>(next));
  }
  if (order.size() == graph.nodes.size()) return order;
  std::vector<std::string> cycle;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!placed[i]) cycle.push_back(graph.nodes[i].id);
  throw base::InputError(base::expectation("graph", "nodes that can be put in order",
                                           "a cycle among or before " + join(cycle),
                                           "removing one of the inputs or control dependencies between them"));
}

}  // namespace collimate::graph
