#include "collimate/base/json.h"
#include "collimate/graph/graph.h"
#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

using nlohmann::json;

// Reads a struct from its fields, of which `required` must be present.
template <class Item>
Item item(const json& value, const std::string& where, std::initializer_list<const char*> required) {
  JsonFields fields(value, where);
  for (const char* key : required) fields.require<json>(key);
  return read_json<Item>(value, where);
}

json node_to_json(const Node& node) {
  json made = node;
  if (node.parameters.is_null()) made.erase("parameters");
  return made;
}

Node node_from_json(const json& value) {
  Node node = item<Node>(value, "graph.nodes", {"id", "model", "function"});
  if (!value.contains("outputs")) node.outputs = {node.id};
  return node;
}

Input input_from_json(const json& value) { return item<Input>(value, "graph.inputs", {"name"}); }

WeightLink link_from_json(const json& value) {
  return item<WeightLink>(value, "graph.links", {"source", "destination"});
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
  json nodes = json::array();
  for (const Node& node : graph.nodes) nodes.push_back(node_to_json(node));
  json all{{"version", kGraphVersion}, {"name", graph.name}, {"models", models_to_json(graph)},
           {"inputs", graph.inputs},   {"nodes", nodes},     {"links", graph.links}};
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
