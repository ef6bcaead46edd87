#include "collimate/graph/trace.h"

#include <algorithm>

#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

thread_local Graph* tracing = nullptr;

Graph& current(const std::string& who) {
  if (tracing == nullptr)
    throw base::InputError(
        base::expectation(who, "a call inside graph::trace", "one outside", "moving it into the traced function"));
  return *tracing;
}

void register_model(Graph& graph, const std::string& name, const std::vector<FunctionSpec>& functions) {
  auto [found, added] = graph.models.try_emplace(name, Model{functions});
  if (!added && found->second.functions != functions)
    throw base::InputError(base::expectation("model " + name, "one list of functions", "two handles that differ"));
}

std::string unique_id(const Graph& graph, const std::string& stem) {
  std::string id = stem;
  for (int n = 2; graph.node_index(id) >= 0; ++n) id = fmt::format("{}.{}", stem, n);
  return id;
}

void append_unique(std::vector<std::string>& list, const std::string& word) {
  if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
}

}  // namespace

Value merge_values(const std::vector<Value>& values) {
  Value merged;
  for (const Value& value : values)
    for (const std::string& name : value.names()) append_unique(merged.names_, name);
  return merged;
}

ModelHandle::ModelHandle(std::string name, std::vector<FunctionSpec> functions)
    : name_(std::move(name)), functions_(std::move(functions)) {}

const std::string& ModelHandle::only_function() const {
  if (functions_.size() != 1)
    throw base::InputError(base::expectation("model " + name_, "the name of a function in the call",
                                             fmt::format("none, and {} functions", functions_.size())));
  return functions_.front().name;
}

std::vector<Value> ModelHandle::call(const std::string& function, const Call& call,
                                     const std::vector<std::string>& outputs,
                                     const std::vector<std::string>& services) const {
  Graph& graph = current(name_ + "." + function);
  register_model(graph, name_, functions_);
  Node node;
  node.id = unique_id(graph, function == name_ ? name_ : name_ + "." + function);
  node.model = name_;
  node.function = function;
  node.inputs = merge_values(call.inputs).names();
  node.services = services;
  node.parameters = call.parameters;
  for (const Value& value : call.waits.values)
    for (const std::string& name : value.names())
      if (int producer = graph.producer(name); producer >= 0) append_unique(node.after, graph.node(producer).id);
  for (const std::string& name : outputs) node.outputs.push_back(node.id + "." + name);
  if (outputs.empty()) node.outputs = {node.id};
  graph.nodes.push_back(node);
  graph.spec(static_cast<int>(graph.nodes.size()) - 1);  // throws for an unknown function
  std::vector<Value> values;
  for (const std::string& name : node.outputs) values.emplace_back(name);
  return values;
}

Value LoopCall::run(const Call& call) const {
  std::vector<std::string> names;
  for (const ModelHandle* service : services) {
    register_model(current(service->name_), service->name_, service->functions_);
    names.push_back(service->name_);
  }
  return merge_values(environment.call(environment.only_function(), call, {}, names));
}

void link(const ModelHandle& source, const ModelHandle& destination, Every frequency) {
  current("link").links.push_back({source.name(), destination.name(), frequency.iterations});
}

Graph trace_inputs(const std::function<void(const std::vector<Value>&)>& body, std::vector<Input> inputs,
                   std::string name) {
  if (tracing != nullptr)
    throw base::InputError(base::expectation("trace", "one trace at a time", "a trace in a trace"));
  Graph graph;
  graph.name = std::move(name);
  graph.inputs = std::move(inputs);
  std::vector<Value> values;
  for (const Input& input : graph.inputs) values.emplace_back(input.name);
  struct Scope {
    explicit Scope(Graph* graph) { tracing = graph; }
    ~Scope() { tracing = nullptr; }
  };
  {
    Scope scope(&graph);
    body(values);
  }
  validate(graph);
  return graph;
}

}  // namespace collimate::graph
