#include "collimate/flow/by_hand.h"

#include <algorithm>
#include <set>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/planned_memory.h"
#include "collimate/flow/updates.h"
#include "collimate/graph/placement.h"
#include "collimate/host/atomic_file.h"

namespace collimate::flow {
namespace {

constexpr double kLookSeconds = 0.2;

// Returns the rows of the input that came back, with the columns that they came with. The pieces may be in any order. A
// function that says nothing of its rows has dropped none.
Batch joined(const Batch& input, const std::vector<Batch>& pieces) {
  if (pieces.empty()) return input;
  const Batch made = Batch::concatenate(pieces);
  if (made.empty()) return input.slice(0, 0);
  std::map<int64_t, int64_t> places;  // uid → row of what was made
  const std::vector<int64_t> uids = made.all(batch::kUid);
  for (size_t i = 0; i < uids.size(); ++i) places[uids[i]] = static_cast<int64_t>(i);
  std::vector<int64_t> kept, order;
  for (int64_t row = 0; row < input.rows(); ++row)
    if (const auto found = places.find(input.get(batch::kUid, row)); found != places.end()) {
      kept.push_back(row);
      order.push_back(found->second);
    }
  return input.gather(kept).merge(made.gather(order));
}

// Checks the graph and returns its placement on one device. Throws InputError where the budget has no room for it.
graph::Placement checked(const graph::Graph& graph, const Registry& registry, const RunOptions& options) {
  graph::validate(graph);
  const graph::Node* first = nullptr;
  for (const graph::Node& node : graph.nodes) {
    if (graph.spec(graph.node_index(node.id)).kind != graph::Kind::kTrain) continue;
    if (first != nullptr && first->inputs != node.inputs)
      throw base::InputError(base::expectation("graph " + graph.name, "nodes that train on the same values",
                                               first->id + " and " + node.id));
    first = &node;
  }
  if (first == nullptr || graph.inputs.size() != 1)
    throw base::InputError(base::expectation("graph " + graph.name, "one input, and a node that trains",
                                             fmt::format("{} inputs", graph.inputs.size())));
  graph::Placement placement = graph::flattening(graph, 1);
  if (!options.swap_directory.empty()) host::ensure_directory(options.swap_directory);
  if (options.memory_budget_bytes > 0) memory_within_budget(graph, placement, registry, options);
  return placement;
}

std::vector<int64_t> uids_of(const Batch& rows) {
  return rows.empty() ? std::vector<int64_t>() : rows.all(batch::kUid);
}

// Returns the rows but those with the uids that were dropped.
Batch without(const Batch& rows, const std::set<int64_t>& dropped) {
  std::vector<int64_t> kept;
  for (int64_t row = 0; row < rows.rows(); ++row)
    if (!dropped.contains(rows.get(batch::kUid, row))) kept.push_back(row);
  return std::ssize(kept) == rows.rows() ? rows : rows.gather(kept);
}

// Returns the columns of all values that a node reads, of the rows that no node has dropped, on whichever branch: a
// value lacks only rows that were dropped on its way.
Batch input_of(const graph::Node& node, const std::map<std::string, Batch>& values, const std::set<int64_t>& dropped) {
  Batch merged = without(values.at(node.inputs.at(0)), dropped);
  for (size_t i = 1; i < node.inputs.size(); ++i) merged = merged.merge(without(values.at(node.inputs[i]), dropped));
  return merged;
}

}  // namespace

ByHand::ByHand(const graph::Graph& graph, const Registry& registry, const RunOptions& options)
    : graph_(graph),
      options_(options),
      placement_(checked(graph_, registry, options_)),
      driver_(graph_, placement_, registry, options_) {
  bring_weights();
}

int ByHand::worker_of(const std::string& model) const { return graph::workers_of(graph_, placement_, model).at(0); }

Batch ByHand::experience(const Batch& input) {
  std::map<std::string, Batch> values = {{graph_.inputs.at(0).name, input}};
  std::set<int64_t> dropped;  // uids, by any node so far: as in a run, no later node sees them
  const std::vector<int> order = graph::topological_order(graph_);
  for (const int index : order) {
    const graph::Node& node = graph_.node(index);
    if (trains(index)) continue;
    const Batch rows = input_of(node, values, dropped), made = rows.empty() ? rows : call(index, rows);
    for (const int64_t uid : uids_of(rows)) dropped.insert(uid);
    for (const int64_t uid : uids_of(made)) dropped.erase(uid);
    for (const std::string& output : node.outputs) values[output] = made;
  }
  const auto first = std::ranges::find_if(order, [&](int index) { return trains(index); });
  return input_of(graph_.node(*first), values, dropped);
}

void ByHand::train(const Batch& rows) {
  for (const int index : graph::topological_order(graph_))
    if (trains(index)) call(index, rows);
  ++trainings_;
  bring_weights();
}

void ByHand::bring_weights() {
  for (const graph::WeightLink& link : graph_.links)
    if (trainings_ % link.every == 0)
      driver_.request({worker_of(link.source)},
                      message::WeightsHere{.source = link.source, .destination = link.destination});
}

Batch ByHand::call(int index, const Batch& rows) {
  const graph::Node& node = graph_.node(index);
  const int worker = worker_of(node.model);
  const graph::Task task{.iteration = iteration_, .node = index};
  driver_.send(worker, message::Start{.task = task,
                                      .iteration = iteration_,
                                      .node = node.id,
                                      .model = node.model,
                                      .function = node.function,
                                      .parameters = node.parameters,
                                      .trains = trains(index),
                                      .streams = graph_.spec(index).streams});
  driver_.send(worker,
               message::Feed{.task = task,
                             .batches = trains(index) ? cut_updates(rows, node.parameters) : std::vector<Batch>{rows}});
  driver_.send(worker, message::Close{.task = task});
  std::vector<Batch> pieces;
  for (bool finished = false; !finished;) {
    std::optional<Received> received = driver_.receive(kLookSeconds, [&] { return "node " + node.id; });
    if (!received) continue;
    if (auto* made = std::get_if<message::Rows>(&received->content)) {
      if (!made->rows.names().empty()) pieces.push_back(std::move(made->rows));
      metrics_.insert(metrics_.end(), made->metrics.begin(), made->metrics.end());
    } else if (const auto* failed = std::get_if<message::Failed>(&received->content)) {
      throw_failure(failed->cause, failed->exit_code);
    } else if (const auto* died = std::get_if<cluster::Died>(&received->content)) {
      throw_failure(died->cause, died->exit_code);
    } else {
      finished = std::holds_alternative<message::Finished>(received->content);
    }
  }
  return trains(index) ? rows : joined(rows, pieces);
}

std::vector<Metric> ByHand::metrics() { return std::exchange(metrics_, {}); }

void ByHand::save_checkpoint(const std::string& model, const std::string& directory) {
  host::ensure_directory(directory);
  driver_.request({worker_of(model)}, message::Export{.model = model, .directory = directory, .iteration = iteration_});
}

}  // namespace collimate::flow
