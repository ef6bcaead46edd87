#include "collimate/base/json.h"
#include "collimate/graph/graph.h"
#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

using nlohmann::json;

json to_json(const Node& node) {
  json made{{"id", node.id},           {"model", node.model}, {"function", node.function}, {"inputs", node.inputs},
            {"outputs", node.outputs}, {"after", node.after}, {"services", node.services}};
  if (!node.parameters.is_null()) made["parameters"] = node.parameters;
  return made;
}

Node node_from_json(const json& value) {
  JsonFields fields(value, "graph.nodes");
  Node node;
  node.id = fields.require<std::string>("id");
  node.model = fields.require<std::string>("model");
  node.function = fields.require<std::string>("function");
  node.inputs = fields.get("inputs", node.inputs);
  node.outputs = fields.get("outputs", std::vector<std::string>{node.id});
  node.after = fields.get("after", node.after);
  node.services = fields.get("services", node.services);
  if (const json* parameters = fields.find("parameters")) node.parameters = *parameters;
  fields.finish();
  return node;
}

json to_json(const Input& input) { return {{"name", input.name}, {"columns", input.columns}}; }

Input input_from_json(const json& value) {
  JsonFields fields(value, "graph.inputs");
  Input input;
  input.name = fields.require<std::string>("name");
  input.columns = fields.get("columns", input.columns);
  fields.finish();
  return input;
}

WeightLink link_from_json(const json& value) {
  JsonFields fields(value, "graph.links");
  WeightLink link;
  link.source = fields.require<std::string>("source");
  link.destination = fields.require<std::string>("destination");
  link.every = fields.get("every", link.every);
  fields.finish();
  return link;
}

json models_to_json(const Graph& graph) {
  json models = json::object();
  for (const auto& [name, model] : graph.models) {
    json functions = json::array();
    for (const FunctionSpec& spec : model.functions) functions.push_back(spec);
    models[name] = {{"functions", functions}};
  }
  return models;
}

Model model_from_json(const std::string& name, const json& value) {
  JsonFields fields(value, "graph.models." + name);
  Model model;
  for (const json& spec : fields.require<std::vector<json>>("functions"))
    model.functions.push_back(function_spec_from_json(spec));
  fields.finish();
  return model;
}

template <class Item, class Convert>
std::vector<Item> list(JsonFields& fields, const char* key, Convert convert) {
  std::vector<Item> made;
  for (const json& value : fields.get<std::vector<json>>(key, {})) made.push_back(convert(value));
  return made;
}

}  // namespace

std::string text(const Graph& graph) {
  json nodes = json::array(), inputs = json::array(), links = json::array();
  for (const Node& node : graph.nodes) nodes.push_back(to_json(node));
  for (const Input& input : graph.inputs) inputs.push_back(to_json(input));
  for (const WeightLink& link : graph.links)
    links.push_back({{"source", link.source}, {"destination", link.destination}, {"every", link.every}});
  json all{{"version", kGraphVersion}, {"name", graph.name}, {"models", models_to_json(graph)},
           {"inputs", inputs},         {"nodes", nodes},     {"links", links}};
  return all.dump(2) + "\n";
}

Graph parse(std::string_view text) {
  json all = base::parse_json(text, "graph");
  JsonFields fields(all, "graph");
  if (int version = fields.require<int>("version"); version != kGraphVersion)
    throw base::InputError(base::expectation("graph.version", std::to_string(kGraphVersion), std::to_string(version),
                                             "writing the graph again with this release"));
  Graph graph;
  graph.name = fields.get("name", graph.name);
  const json models = fields.require<json>("models");
  JsonFields checked(models, "graph.models");
  for (const auto& [name, value] : models.items()) graph.models[name] = model_from_json(name, value);
  graph.inputs = list<Input>(fields, "inputs", input_from_json);
  graph.nodes = list<Node>(fields, "nodes", node_from_json);
  graph.links = list<WeightLink>(fields, "links", link_from_json);
  fields.finish();
  return graph;
}

}  // namespace collimate::graph
