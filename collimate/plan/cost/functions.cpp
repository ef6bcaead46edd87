#include "collimate/plan/cost/functions.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

Work work_of(graph::Kind kind) {
  if (kind == graph::Kind::kGenerate) return Work::kGenerate;
  return kind == graph::Kind::kTrain ? Work::kTrain : Work::kScore;
}

// Returns whether a function has a head over the vocabulary: it samples, gives log-probs, or trains weights that no
// function reads to score. A model that scores has a head of one value.
bool needs_head(const graph::Graph& graph, const std::string& model, const graph::FunctionSpec& spec) {
  if (spec.kind == graph::Kind::kGenerate) return true;
  const auto gives_log_probs = [](const graph::FunctionSpec& f) {
    return f.kind == graph::Kind::kScore && std::any_of(f.makes.begin(), f.makes.end(), [](const graph::Column& c) {
             return c.name.find("log_probs") != std::string::npos;
           });
  };
  if (spec.kind == graph::Kind::kScore) return gives_log_probs(spec);
  const auto reads_its_weights = [&](const std::string& other) {
    return other == model || std::any_of(graph.links.begin(), graph.links.end(), [&](const graph::WeightLink& link) {
             return link.source == model && link.destination == other;
           });
  };
  bool scores = false;
  for (const graph::Node& node : graph.nodes)
    if (reads_its_weights(node.model))
      if (const graph::FunctionSpec* called = graph.find_function(node.model, node.function);
          called != nullptr && called->kind == graph::Kind::kScore)
        scores = scores || !gives_log_probs(*called);
  return !scores;
}

bool trained_in(const graph::Graph& graph, const std::string& model) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const graph::Node& node) {
    const graph::FunctionSpec* spec = graph.find_function(node.model, node.function);
    return node.model == model && spec != nullptr && spec->writes_weights;
  });
}

int64_t rank_of(const Request& request, const std::string& model) {
  if (const auto own = request.lora.find(model); own != request.lora.end()) return own->second;
  for (const graph::WeightLink& link : request.graph.links)
    if (const auto got = request.lora.find(link.source); link.destination == model && got != request.lora.end())
      return got->second;
  return 0;
}

}  // namespace

Functions::Functions(const Request& request) {
  check(request);
  std::vector<int> function_of_node(request.graph.nodes.size(), -1);
  for (const int node : graph::topological_order(request.graph)) {
    base::at(function_of_node, node) = static_cast<int>(list.size());
    add(request, node, function_of_node);
  }
  if (models.empty())
    throw base::InputError(base::expectation("plan", "a graph with models on devices", "host functions only"));
  add_transfers(request.graph);
  set_bases(request);
}

void Functions::add(const Request& request, int index, const std::vector<int>& function_of_node) {
  const graph::Graph& graph = request.graph;
  const graph::Node& node = graph.node(index);
  const graph::FunctionSpec& spec = graph.spec(index);
  Function made;
  made.node = index;
  made.work = work_of(spec.kind);
  made.streams = spec.streams;
  made.by_rows = !spec.streams && spec.granularity != graph::Granularity::kIteration;
  for (const std::string& input : node.inputs)
    if (const int producer = graph.producer(input); producer >= 0)
      made.producers.push_back(base::at(function_of_node, producer));
  for (const std::string& id : node.after) made.producers.push_back(base::at(function_of_node, graph.node_index(id)));
  if (spec.kind == graph::Kind::kHost) {
    made.host_seconds = (spec.cost.seconds_per_row + request.constants.host_row_seconds) * request.load.rows;
    list.push_back(made);
    return;
  }
  outline_of(request, node.model);
  const auto known = std::find(models.begin(), models.end(), node.model);
  made.model = static_cast<int>(known - models.begin());
  if (known == models.end()) models.push_back(node.model);
  made.language_head = needs_head(graph, node.model, spec);
  made.call_seconds = made.by_rows ? request.constants.phase_seconds : 0;
  made.lora_rank = rank_of(request, node.model);
  made.frozen = made.work == Work::kScore && !trained_in(graph, node.model);
  for (const graph::WeightLink& link : graph.links) made.frozen = made.frozen && link.destination != node.model;
  list.push_back(made);
}

void Functions::add_transfers(const graph::Graph& graph) {
  const auto index_of = [&](const std::string& model) {
    return static_cast<int>(std::find(models.begin(), models.end(), model) - models.begin());
  };
  for (const graph::WeightLink& link : graph.links) {
    Transfer made{index_of(link.source), index_of(link.destination), -1, {}};
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].model == made.source && list[i].work == Work::kTrain) made.trainer = static_cast<int>(i);
      if (list[i].model == made.destination) made.readers.push_back(static_cast<int>(i));
    }
    if (made.trainer < 0 || made.readers.empty()) continue;
    transfers.push_back(made);
    base::at(list, made.trainer).passes = true;
    for (const int reader : made.readers) base::at(list, reader).passes = true;
  }
}

// The trainer of a model holds its weights. A model that gets another's weights may read them where they are, and a
// frozen model may read those to which a trainer adds adapters.
void Functions::set_bases(const Request& request) {
  const auto frozen_weights = [&](size_t f) {
    const auto named = request.bases.find(model_of(f));
    if (named != request.bases.end()) return named->second;
    return std::string(request.models.contains(model_of(f)) || !list[f].language_head ? "" : "policy");
  };
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].model < 0 || list[i].work == Work::kTrain) continue;
    for (size_t j = 0; j < list.size() && list[i].base < 0; ++j)
      if (j != i && list[j].model == list[i].model && list[j].work == Work::kTrain) list[i].base = static_cast<int>(j);
    for (const Transfer& transfer : transfers)
      if (list[i].base < 0 && transfer.destination == list[i].model) list[i].base = transfer.trainer;
    for (size_t j = 0; j < list.size() && list[i].base < 0 && list[i].frozen; ++j)
      if (list[j].work == Work::kTrain && list[j].lora_rank > 0 && !frozen_weights(i).empty() &&
          frozen_weights(i) == frozen_weights(j))
        list[i].base = static_cast<int>(j);
  }
}

Job job_of(const Request& request, const Functions& functions, size_t index, const Kinds& kinds, int devices) {
  const Function& function = functions.at(index);
  return {outline_of(request, functions.model_of(index)),
          function.work,
          function.language_head,
          request.cluster.gpu(kinds),
          std::min(kinds.per_node, devices),
          devices,
          request.load,
          function.passes};
}

}  // namespace collimate::plan
