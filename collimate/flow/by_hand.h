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

// A ByHand runs the iterations of a graph in a loop of the caller's own, on one device: it has the modules of a run,
// without schedule, journal, checkpoints and evaluations. Equal rows give results with the same bits as a run's. Only
// one thread may use it.
class ByHand {
 public:
  // Sets all modules up and brings the weights along the graph's links. Uses those of the options that workers are
  // told. Throws InputError for what does not fit the budget, and what a module's setup throws.
  ByHand(const graph::Graph& graph, const Registry& registry, const RunOptions& options);

  // Runs the nodes that do not train on the rows of an iteration's input, each on all columns that led to it, and
  // returns the rows that the training nodes read. Rows that a node drops are gone on all branches, as in a run, which
  // also asks for others in place of those that a filter drops. Throws the first cause of a failure, as its own class.
  Batch experience(const Batch& input);
  // Runs the nodes that train on rows of `experience`, cut into updates by their parameters, and brings the weights
  // along those of the graph's links that are due after so many calls.
  void train(const Batch& rows);
  // Makes the following calls belong to that iteration, on which draws and schedules depend. The first is 0.
  void begin_iteration(int64_t iteration) { iteration_ = iteration; }
  // Returns what modules have measured since the last call, in the order of the measurements.
  std::vector<Metric> metrics();
  // Calls the model's save_checkpoint with a directory, which is made.
  void save_checkpoint(const std::string& model, const std::string& directory);

 private:
  int worker_of(const std::string& model) const;
  bool trains(int node) const { return graph_.spec(node).kind == graph::Kind::kTrain; }
  // Returns the rows with the columns that a node makes, without the rows that it drops. A node that trains returns
  // `rows`.
  Batch call(int node, const Batch& rows);
  void bring_weights();

  const graph::Graph graph_;
  const RunOptions options_;
  const graph::Placement placement_;
  Driver driver_;
  std::vector<Metric> metrics_;
  int64_t iteration_ = 0;
  int64_t trainings_ = 0;  // calls of train
};

}  // namespace collimate::flow
