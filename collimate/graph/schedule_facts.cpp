#include "collimate/graph/schedule_facts.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/memory_words.h"
#include "collimate/base/philox.h"
#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

void check(bool good, const char* option, const std::string& expected, int64_t got) {
  if (!good)
    throw base::InputError(base::expectation(std::string("schedule.") + option, expected, std::to_string(got)));
}

void check_options(const ScheduleOptions& options) {
  check(options.group_size >= 1, "group_size", "at least 1", options.group_size);
  check(options.rows >= 1, "rows", "at least 1", options.rows);
  check(options.rows % options.group_size == 0, "rows", fmt::format("a multiple of group_size {}", options.group_size),
        options.rows);
  check(options.epoch_iterations >= 0, "epoch_iterations", "0 or more", options.epoch_iterations);
  if (options.epoch_iterations > 0) {
    check(options.last_rows >= 1 && options.last_rows <= options.rows, "last_rows",
          fmt::format("1 to the {} of the other iterations", options.rows), options.last_rows);
    check(options.last_rows % options.group_size == 0, "last_rows",
          fmt::format("a multiple of group_size {}", options.group_size), options.last_rows);
  }
  check(options.first_iteration >= 0, "first_iteration", "0 or more", options.first_iteration);
  check(options.replace_limit >= 1, "replace_limit", "at least 1", options.replace_limit);
  check(options.save_every >= 0, "save_every", "0 or more", options.save_every);
  check(options.evaluate_every >= 0, "evaluate_every", "0 or more", options.evaluate_every);
}

void add_unique(std::vector<int>& list, int item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

NodeFacts own_facts(const GraphFacts& facts, const Placement& placement, int index) {
  const Graph& graph = facts.graph;
  const Node& node = graph.node(index);
  NodeFacts made;
  made.spec = &graph.spec(index);
  for (const std::string& value : node.inputs)
    if (int producer = graph.producer(value); producer >= 0) add_unique(made.producers, producer);
  for (const std::string& id : node.after) made.after.push_back(graph.node_index(id));
  made.replicas = replicas(graph, placement, index);
  made.models = {node.model};
  made.models.insert(made.models.end(), node.services.begin(), node.services.end());
  made.whole = made.spec->granularity == Granularity::kIteration || made.spec->kind == Kind::kTrain;
  made.group = made.spec->granularity == Granularity::kGroup;
  made.writes = made.spec->writes_weights;
  return made;
}

// Marks every node from which a filter gets rows, and the filter itself.
void mark_deciding(GraphFacts& facts, int index) {
  NodeFacts& node = base::at(facts.nodes, index);
  if (node.decides) return;
  node.decides = true;
  const std::string& id = facts.graph.node(index).id;
  if (node.whole)
    throw base::InputError(
        base::expectation("schedule." + id, "granularity row or group of a filter and all above it", "iteration"));
  if (!node.after.empty())
    throw base::InputError(base::expectation("schedule." + id, "no control dependency of a filter or above it",
                                             join(facts.graph.node(index).after)));
  for (int producer : node.producers) mark_deciding(facts, producer);
}

bool share_worker(const NodeFacts& a, const NodeFacts& b) {
  for (const Replica& x : a.replicas)
    for (const Replica& y : b.replicas)
      if (std::find_first_of(x.begin(), x.end(), y.begin(), y.end()) != x.end()) return true;
  return false;
}

// Says whether a node may wait for refilled rows. It may only if it has its workers for itself, because other nodes on
// them may have to do these rows first.
bool may_hold(const GraphFacts& facts, size_t index) {
  if (facts.filters.empty() || facts.nodes[index].whole) return false;
  for (size_t other = 0; other < facts.nodes.size(); ++other)
    if (other != index && !facts.nodes[other].whole && share_worker(facts.nodes[index], facts.nodes[other]))
      return false;
  return true;
}

void order_nodes(GraphFacts& facts) {
  facts.order = topological_order(facts.graph);
  std::stable_partition(facts.order.begin(), facts.order.end(), [&](int n) { return facts.node(n).decides; });
  for (size_t i = 0; i < facts.order.size(); ++i) base::at(facts.nodes, facts.order[i]).position = static_cast<int>(i);
}

void fill_graph(GraphFacts& facts, const Placement& placement) {
  const int count = static_cast<int>(facts.graph.nodes.size());
  for (int n = 0; n < count; ++n) facts.nodes.push_back(own_facts(facts, placement, n));
  for (int n = 0; n < count; ++n) {
    for (int producer : facts.node(n).producers) base::at(facts.nodes, producer).consumers.push_back(n);
    if (facts.node(n).spec->drops_rows) facts.filters.push_back(n);
  }
  for (int filter : facts.filters) mark_deciding(facts, filter);
  for (size_t n = 0; n < facts.nodes.size(); ++n) facts.nodes[n].holds = may_hold(facts, n);
  order_nodes(facts);
  facts.nodes_on.resize(static_cast<size_t>(worker_count(facts.graph, placement)));
  for (int n : facts.order)
    for (const Replica& replica : facts.node(n).replicas)
      for (int worker : replica) add_unique(base::at(facts.nodes_on, worker), n);
}

void fill_workers(ScheduleFacts& facts) {
  facts.swapped_on.resize(facts.nodes_on.size());
  facts.always_on.resize(facts.nodes_on.size());
  for (const auto& [name, model] : facts.graph.models) {
    facts.workers[name] = workers_of(facts.graph, facts.placement, name);
    for (int worker : facts.workers[name])
      base::at(facts.placement.swaps(name) ? facts.swapped_on : facts.always_on, worker).push_back(name);
  }
}

// A Held is a set of models that a worker has at one time: those that are always there, some that take turns beside
// them, and when that is.
struct Held {
  int worker = 0;
  std::vector<std::string> models;
  std::string when;
  int64_t bytes = 0;
};

// Keeps the larger of two sets, so that a budget that is enough for it is enough for all.
void keep_larger(const ScheduleFacts& facts, Held& most, int worker, const std::vector<std::string>& models,
                 const std::string& when) {
  std::vector<std::string> together = base::at(facts.always_on, worker);
  together.insert(together.end(), models.begin(), models.end());
  const int64_t bytes = facts.memory.bytes(worker, together);
  if (bytes > most.bytes) most = {worker, std::move(together), when, bytes};
}

// Returns the largest set. Models that are used together are there together; each is also there alone, as saves need
// it.
Held most_held(const ScheduleFacts& facts) {
  Held most;
  for (int number = 0; number <= std::ssize(facts.evaluations); ++number) {
    const GraphFacts& graph = facts.of(number);
    for (int n : graph.order)
      for (const Replica& replica : graph.node(n).replicas)
        for (int worker : replica)
          keep_larger(facts, most, worker, graph.node(n).models, graph.graph.node(n).id + " runs");
  }
  for (const std::string& model : facts.swapped())
    for (int worker : facts.workers.at(model)) keep_larger(facts, most, worker, {model}, model + " is there");
  for (const WeightLink& link : facts.graph.links)
    for (int worker : facts.workers.at(link.destination)) {
      if (facts.memory.in_place.contains(link.destination)) break;
      const std::vector<int>& from = facts.workers.at(link.source);
      if (std::find(from.begin(), from.end(), worker) == from.end()) continue;
      keep_larger(facts, most, worker, {link.source, link.destination},
                  fmt::format("weights go from {} to {}", link.source, link.destination));
    }
  return most;
}

void check_memory(const ScheduleFacts& facts) {
  const int64_t budget = facts.memory.budget_bytes;
  if (budget == 0) return;
  const Held most = most_held(facts);
  if (most.bytes <= budget) return;
  const std::map<std::string, int64_t> items = facts.memory.together(most.worker, most.models);
  throw base::InputError(
      base::no_room_message({.device = most.worker,
                             .budget_bytes = budget,
                             .items = {items.begin(), items.end()},
                             .when = " while " + most.when,
                             .remedies = {"residency: swap for more models", "models on other devices"}}));
}

void check_evaluation(const EvaluationGraph& evaluation, const ScheduleFacts& facts) {
  const std::string where = "evaluation" + (evaluation.name.empty() ? "" : " " + evaluation.name);
  const auto refuse = [&](const std::string& expected, const std::string& got) {
    throw base::InputError(base::expectation(where, expected, got));
  };
  for (const EvaluationTimes& other : facts.times)
    if (other.name == evaluation.name) refuse("a name that no other evaluation has", "'" + evaluation.name + "'");
  if (!evaluation.graph.links.empty()) refuse("no weight links", std::to_string(evaluation.graph.links.size()));
  for (size_t n = 0; n < evaluation.graph.nodes.size(); ++n)
    if (evaluation.graph.spec(static_cast<int>(n)).writes_weights)
      refuse("functions that leave weights as they are", evaluation.graph.nodes[n].id + ", which writes them");
  if (evaluation.group_size < 1 || evaluation.rows < 1 || evaluation.rows % evaluation.group_size != 0)
    refuse(fmt::format("rows in whole groups of {}", evaluation.group_size), fmt::format("{} rows", evaluation.rows));
  if (evaluation.every.value_or(0) < 0) refuse("every 0 or more iterations", std::to_string(*evaluation.every));
}

// Adds an evaluation, whose graph gets the models of the run.
void add_evaluation(ScheduleFacts& facts, const EvaluationGraph& evaluation) {
  GraphFacts& made = facts.evaluations.emplace_back();
  made.graph = evaluation.graph;
  made.graph.models = facts.graph.models;
  validate(made.graph);
  check_evaluation(evaluation, facts);
  made.rows = evaluation.rows;
  made.group_size = evaluation.group_size;
  made.number = static_cast<int>(facts.evaluations.size());
  fill_graph(made, facts.placement);
  facts.times.push_back({evaluation.name, evaluation.every.value_or(facts.options.evaluate_every),
                         evaluation.first.value_or(facts.options.evaluate_first)});
}

}  // namespace

// An evaluation after iteration i has version i + 1, and no later iteration uses an older one.
int64_t ScheduleFacts::version_for(int64_t iteration) const {
  int64_t version = std::max(options.first_iteration, iteration - options.staleness);
  if (!options.exact_versions) return version;
  for (const EvaluationTimes& when : times)
    if (when.every > 0) version = std::max(version, iteration / when.every * when.every);
  return version;
}

std::vector<std::string> ScheduleFacts::swapped() const {
  std::vector<std::string> models;
  for (const auto& [name, model] : graph.models)
    if (placement.swaps(name)) models.push_back(name);
  return models;
}

std::vector<std::string> ScheduleFacts::saved_in_turn() const {
  std::vector<std::string> models = swapped();
  std::erase_if(models, [&](const std::string& model) { return memory.stateless.contains(model); });
  return models;
}

std::string ScheduleFacts::describe(const Task& task) const {
  const std::string text =
      graph::describe(of(task.graph).graph, Task{task.iteration, task.node, task.replica, task.part});
  if (task.graph == 0) return text;
  const std::string& name = base::at(times, task.graph - 1).name;
  return "evaluation " + (name.empty() ? "" : name + " ") + text;
}

ScheduleFacts make_facts(const Graph& graph, const Placement& placement, const ScheduleOptions& options,
                         std::span<const EvaluationGraph> evaluations, const DeviceMemory& memory) {
  check_options(options);
  ScheduleFacts facts;
  facts.graph = with_models_of(graph, evaluations);
  validate(facts.graph);
  validate(facts.graph, placement);
  facts.placement = placement;
  facts.options = options;
  if (options.staleness < 0) facts.options.staleness = placement.staleness;
  check(!options.may_be_empty || facts.options.staleness == 0, "staleness", "0 where iterations may be empty",
        facts.options.staleness);
  facts.rows = options.rows;
  facts.group_size = options.group_size;
  fill_graph(facts, placement);
  facts.evaluations.reserve(evaluations.size());  // nodes point into their graphs
  for (const EvaluationGraph& evaluation : evaluations) add_evaluation(facts, evaluation);
  fill_workers(facts);
  facts.memory = memory;
  check_memory(facts);
  const std::string last =
      options.epoch_iterations > 0 ? fmt::format("/{}/{}", options.epoch_iterations, options.last_rows) : "";
  facts.fingerprint = base::stable_hash(text(graph) + fmt::format("{}/{}{}", options.rows, options.group_size, last));
  Placement places = placement;
  places.residency.clear();  // another residency leaves everything in its place
  facts.placed = base::stable_hash(json_text(places));
  return facts;
}

}  // namespace collimate::graph
