#include <algorithm>
#include <map>
#include <set>

#include "collimate/graph/graph.h"
#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

[[noreturn]] void fail(const std::string& where, const std::string& expected, const std::string& got,
                       const std::string& remedy = "") {
  throw base::InputError(base::expectation(where.empty() ? "graph" : "graph." + where, expected, got, remedy));
}

std::vector<std::string> model_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& [name, model] : graph.models) names.push_back(name);
  return names;
}

void check_model(const Graph& graph, const std::string& where, const std::string& model) {
  if (!graph.models.count(model)) fail(where, "a model out of " + join(model_names(graph)), "'" + model + "'");
}

void check_names(const Graph& graph) {
  std::set<std::string> ids, values;
  for (const Input& input : graph.inputs)
    if (!values.insert(input.name).second) fail("inputs", "names used once", "'" + input.name + "' twice");
  for (const Node& node : graph.nodes) {
    if (!ids.insert(node.id).second) fail("nodes", "ids used once", "'" + node.id + "' twice");
    for (const std::string& value : node.outputs)
      if (!values.insert(value).second) fail(node.id, "output names used once", "'" + value + "' twice");
  }
}

void check_call(const Graph& graph, const Node& node) {
  check_model(graph, node.id, node.model);
  graph.spec(graph.node_index(node.id));
  if (node.inputs.empty()) fail(node.id, "at least one input", "none");
  for (const std::string& service : node.services) check_model(graph, node.id + ".services", service);
  for (const std::string& id : node.after)
    if (graph.node_index(id) < 0) fail(node.id + ".after", "the id of a node", "'" + id + "'");
}

void check_values(const Graph& graph, const Node& node) {
  for (const std::string& value : node.inputs) {
    bool input = std::any_of(graph.inputs.begin(), graph.inputs.end(), [&](const Input& i) { return i.name == value; });
    if (!input && graph.producer(value) < 0)
      fail(node.id + ".inputs", "a graph input or a node's output", "'" + value + "', which nothing makes");
  }
}

void check_links(const Graph& graph) {
  std::set<std::string> destinations;
  for (const WeightLink& link : graph.links) {
    const std::string where = "links." + link.source + "→" + link.destination;
    check_model(graph, where, link.source);
    check_model(graph, where, link.destination);
    if (link.every < 1) fail(where, "every ≥ 1", std::to_string(link.every));
    if (link.source == link.destination) fail(where, "two models", "one");
    if (!graph.trains(link.source)) fail(where, "a source that some node trains", link.source + ", which none trains");
    if (graph.trains(link.destination)) fail(where, "a destination that nothing trains", link.destination);
    if (!destinations.insert(link.destination).second) fail(where, "one link into " + link.destination, "two");
  }
}

// A Made is the type of a column that reached a node, and who made the column.
struct Made {
  std::string type;
  std::string maker;
};
using Columns = std::map<std::string, Made>;

std::string who_makes(const Graph& graph, const std::string& column) {
  auto makes = [&](const FunctionSpec& spec) {
    return std::any_of(spec.makes.begin(), spec.makes.end(), [&](const Column& made) { return made.name == column; });
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (makes(graph.spec(static_cast<int>(i)))) return "giving it the output of node " + graph.nodes[i].id;
  for (const auto& [name, model] : graph.models)
    for (const FunctionSpec& spec : model.functions)
      if (makes(spec)) return "a node that calls " + name + "." + spec.name;
  return "";
}

void check_needs(const Graph& graph, const Node& node, const FunctionSpec& spec, const Columns& available) {
  for (const Column& need : spec.needs) {
    auto found = available.find(need.name);
    if (found == available.end())
      fail(
          node.id, fmt::format("column '{}' from its inputs {}", need.name, join(node.inputs)),
          "none of that name; they carry " +
              [&] {
                std::vector<std::string> names;
                for (const auto& [name, made] : available) names.push_back(name);
                return names.empty() ? std::string("no columns") : join(names);
              }(),
          who_makes(graph, need.name));
    if (!need.type.empty() && !found->second.type.empty() && need.type != found->second.type)
      fail(node.id, fmt::format("column '{}' of type {}", need.name, need.type),
           fmt::format("{} from {}", found->second.type, found->second.maker));
  }
}

void check_columns(const Graph& graph) {
  std::map<std::string, Columns> carried;  // by value
  for (const Input& input : graph.inputs)
    for (const Column& column : input.columns) carried[input.name][column.name] = {column.type, "input " + input.name};
  for (int index : topological_order(graph)) {
    const Node& node = graph.node(index);
    const FunctionSpec& spec = graph.spec(index);
    Columns columns;
    for (const std::string& value : node.inputs) columns.insert(carried[value].begin(), carried[value].end());
    check_needs(graph, node, spec, columns);
    for (const Column& column : spec.makes) columns[column.name] = {column.type, "node " + node.id};
    for (const std::string& value : node.outputs) carried[value] = columns;
  }
}

}  // namespace

void validate(const Graph& graph) {
  if (graph.nodes.empty()) fail("", "at least one node", "none");
  check_names(graph);
  for (const Node& node : graph.nodes) check_call(graph, node);
  for (const Node& node : graph.nodes) check_values(graph, node);
  check_links(graph);
  check_columns(graph);
}

}  // namespace collimate::graph
