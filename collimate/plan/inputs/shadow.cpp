#include "collimate/plan/inputs/shadow.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

bool writes_weights(const graph::Graph& graph, const graph::Node& node) {
  const graph::FunctionSpec* spec = graph.find_function(node.model, node.function);
  return spec != nullptr && spec->writes_weights;
}

template <typename Value>
void rename_key(std::map<std::string, Value>& map, const std::string& from, const std::string& to) {
  auto entry = map.extract(from);
  if (entry.empty()) return;
  entry.key() = to;
  map.insert(std::move(entry));
}

}  // namespace

std::vector<std::string> models_to_shadow(const graph::Graph& graph) {
  std::vector<std::string> found;
  for (const auto& entry : graph.models) {
    const std::string& name = entry.first;
    const auto is = [&](const graph::Node& node, bool writes) {
      return node.model == name && writes_weights(graph, node) == writes;
    };
    if (std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const graph::Node& node) { return is(node, true); }) &&
        std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const graph::Node& node) { return is(node, false); }))
      found.push_back(name);
  }
  return found;
}

void add_shadow(Request& request, const std::string& model) {
  graph::Graph& graph = request.graph;
  const std::vector<std::string> known = models_to_shadow(graph);
  if (known.empty())
    throw base::InputError(base::expectation("--shadow " + model, "a flow with a model that trains and scores",
                                             "none: every trainer is a model of its own already", "leaving it out"));
  if (std::find(known.begin(), known.end(), model) == known.end()) base::throw_unknown_choice("--shadow", model, known);
  const std::string trainer = model + "_trainer";
  if (graph.models.contains(trainer))
    throw base::InputError(base::expectation("--shadow " + model, "no model " + trainer, "one", "leaving it out"));
  for (graph::Node& node : graph.nodes)
    if (node.model == model && writes_weights(graph, node)) node.model = trainer;
  std::vector<graph::FunctionSpec> kept;
  std::vector<graph::FunctionSpec>& moved = graph.models[trainer].functions;
  for (graph::FunctionSpec& spec : graph.models[model].functions)
    (spec.writes_weights ? moved : kept).push_back(std::move(spec));
  graph.models[model].functions = std::move(kept);
  for (graph::WeightLink& link : graph.links)
    if (link.source == model) link.source = trainer;
  graph.links.push_back({trainer, model});
  rename_key(request.lora, model, trainer);
  rename_key(request.bases, model, trainer);
  graph::validate(graph);
}

}  // namespace collimate::plan
