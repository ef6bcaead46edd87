#pragma once

#include <map>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/flow/driver.h"
#include "collimate/flow/metric.h"
#include "collimate/flow/registry.h"
#include "collimate/graph/graph.h"

namespace collimate::flow {

// The iterations of a graph in a loop of the caller's own, on one device: the modules of a run, without its schedule,
// journal, checkpoints and evaluations. The same rows give a run's bits. Used by one thread.
class ByHand {
 public:
  // Sets all modules up. Of the options all are read that workers are told. InputError for what does not fit the
  // budget; else what a module's setup throws.
  ByHand(const graph::Graph& graph, const Registry& registry, const RunOptions& options);

  // Runs the nodes that do not train on the rows of an iteration's input, each on what led to it, and returns what
  // those that train read. Throws the first cause of a failure, of its class.
  Batch experience(const Batch& input);
  // Runs the nodes that train on rows of `experience`, in the updates that their parameters cut, and brings the weights
  // along the graph's links.
  void train(const Batch& rows);
  // The calls from now on are those of that iteration, which draws and schedules follow. The first is 0.
  void begin_iteration(int64_t iteration) { iteration_ = iteration; }
  // Returns what modules have measured since this was asked last, in their order.
  std::vector<Metric> metrics();
  // The model's save_checkpoint into a directory, which is made.
  void save_checkpoint(const std::string& model, const std::string& directory);

 private:
  int worker_of(const std::string& model) const;
  bool trains(int node) const { return graph_.spec(node).kind == graph::Kind::kTrain; }
  // Rows with the columns that a node makes, without those that it drops; the same rows of a node that trains.
  Batch call(int node, const Batch& rows);

  const graph::Graph graph_;
  const RunOptions options_;
  const graph::Placement placement_;
  Driver driver_;
  std::vector<Metric> metrics_;
  int64_t iteration_ = 0;
};

}  // namespace collimate::flow
