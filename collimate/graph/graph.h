#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/fields.h"
#include "collimate/graph/function_spec.h"

namespace collimate::graph {

inline constexpr int kGraphVersion = 1;

// A Model is a model as the graph sees it: the functions that can be called on it. A host function is a model of one
// function.
struct Model {
  std::vector<FunctionSpec> functions;
  bool operator==(const Model&) const = default;
};

// An input enters from outside, by rows; all inputs share the iteration's row numbers.
struct Input {
  std::string name;
  std::vector<Column> columns;
  bool operator==(const Input&) const = default;
  COLLIMATE_FIELDS(name, columns)
};

// A Node is one call of a model's function in an iteration, on one or more values. A value carries all that led to it:
// the columns that its node makes and those of the node's inputs. A node with `services` is a loop: the environment
// `model` drives those models itself, and holds their devices while it runs (on one replica).
struct Node {
  std::string id;
  std::string model;
  std::string function;
  std::vector<std::string> inputs;    // names of values: graph inputs or outputs of nodes
  std::vector<std::string> outputs;   // names of values; usually {id}
  std::vector<std::string> after;     // node ids that must be complete in the same iteration before this one starts
  std::vector<std::string> services;  // model names
  nlohmann::json parameters;          // of this call; null when there are none
  bool operator==(const Node&) const = default;
  COLLIMATE_FIELDS(id, model, function, inputs, outputs, after, services, parameters)
};

// A WeightLink copies source's weights to destination after every `every`-th training of source.
struct WeightLink {
  std::string source;
  std::string destination;
  int64_t every = 1;
  bool operator==(const WeightLink&) const = default;
  COLLIMATE_FIELDS(source, destination, every)
};

// A Graph is one iteration of an algorithm as data. Nodes stand in the order in which they were traced.
struct Graph {
  std::string name;
  std::map<std::string, Model> models;
  std::vector<Input> inputs;
  std::vector<Node> nodes;
  std::vector<WeightLink> links;
  bool operator==(const Graph&) const = default;

  const Node& node(int index) const { return base::at(nodes, index); }
  int node_index(std::string_view id) const;   // -1 when absent
  int producer(std::string_view value) const;  // node index; -1 for an input or an unknown value
  const FunctionSpec& spec(int index) const;   // of the node's function; InputError when it has none
  const FunctionSpec* find_function(std::string_view model, std::string_view function) const;
  bool trains(std::string_view model) const;  // some node's function writes its weights
};

// These write and read JSON in canonical order with two-space indent: parse(text(g)) == g and, for text written by it,
// text(parse(t)) == t. parse throws InputError for broken JSON, another version and unknown keys; it does not validate.
std::string text(const Graph& graph);
Graph parse(std::string_view text);

// Returns node indices in an order in which producers and `after` come first; ties keep the traced order. Throws
// InputError naming the nodes of a cycle.
std::vector<int> topological_order(const Graph& graph);

// Checks everything about the graph that can be wrong before a worker exists: duplicate names, unknown model, function,
// value or control dependency, cycles, links without training, missing or mistyped columns (naming the node that should
// have made the column). Throws InputError.
void validate(const Graph& graph);

}  // namespace collimate::graph
