#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/cluster/worker.h"
#include "collimate/flow/metric.h"
#include "collimate/flow/payload.h"
#include "collimate/flow/shared_store.h"
#include "collimate/graph/event.h"
#include "collimate/tensor/operation_times.h"

// The protocol between the driver and the workers of a run: one struct for each kind of message. Each worker gets its
// messages in the order in which the driver sent them, and the driver gets a worker's in its order.
namespace collimate::flow::message {

// Both ways, ahead of the message that they come with: what models have put into the SharedStore and the receiver has
// not been told. A worker puts them into its replica; the driver keeps them and tells the other workers.
struct Puts {
  static constexpr const char* kKind = "puts";
  std::vector<StoreEntry> entries;
  COLLIMATE_FIELDS(entries)
};

// ---- from the driver to a worker: tasks

// Begins a task, on every rank of its replica. Nothing answers it but what is done with what is fed, or Failed.
struct Start {
  static constexpr const char* kKind = "start";
  graph::Task task;
  int64_t iteration = 0;  // that its calls count as one of
  std::string node;
  std::string model;
  std::string function;
  nlohmann::json parameters;  // of the node
  bool trains = false;
  bool streams = false;
  int rank = 0;  // of the worker in the replica

  COLLIMATE_FIELDS(task, iteration, node, model, function, parameters, trains, streams, rank)
};

// Rows for a task, this rank's share. A function that streams answers with Rows as they are finished, every other one
// with Rows of the same number. A task that has failed forgets it.
struct Feed {
  static constexpr const char* kKind = "feed";
  graph::Task task;
  int64_t feed = 0;            // its number in the task
  std::vector<Batch> batches;  // one; of a function that trains one for each update

  COLLIMATE_FIELDS(task, feed, batches)
};

// Nothing more is fed: answered by Finished when all that was fed is done.
struct Close {
  static constexpr const char* kKind = "close";
  graph::Task task;
  COLLIMATE_FIELDS(task)
};

// Ends a task at once, one whose ranks step in lockstep at their next step. No answer; what still comes of it counts no
// more.
struct Cancel {
  static constexpr const char* kKind = "cancel";
  graph::Task task;
  COLLIMATE_FIELDS(task)
};

// The streams of a model stop between two steps, while its weights change, or go on. No answer.
struct Pause {
  static constexpr const char* kKind = "pause";
  std::string model;
  bool paused = true;

  COLLIMATE_FIELDS(model, paused)
};

// An iteration has ended: the SharedStore keeps the newest values alone. No answer.
struct Ended {
  static constexpr const char* kKind = "ended";
  int64_t iteration = 0;

  COLLIMATE_FIELDS(iteration)
};

// ---- from the worker to the driver: tasks

// Rows that came out of a task, and what its work since the last ones took. Answers a Feed; of a stream, as they come.
struct Rows {
  static constexpr const char* kKind = "rows";
  graph::Task task;
  std::optional<int64_t> feed;  // nothing: of a stream
  int rank = 0;                 // of the worker in the replica
  Batch rows;                   // those fed and not among them were dropped; no columns at all: nothing is said of them
  std::vector<Metric> metrics;
  double begin_seconds = 0;  // base::now_seconds() of the worker's machine; 0: there was no work
  double end_seconds = 0;
  double busy_seconds = 0;                        // of the time between, in the function
  int64_t peak_bytes = 0;                         // of the worker's memory meanwhile
  std::vector<tensor::OperationTime> operations;  // where RunOptions::on_call asks for them

  COLLIMATE_FIELDS(task, feed, rank, rows, metrics, begin_seconds, end_seconds, busy_seconds, peak_bytes, operations)
};

// A task that was closed has done everything on this rank: the last message of it.
struct Finished {
  static constexpr const char* kKind = "finished";
  graph::Task task;
  COLLIMATE_FIELDS(task)
};

// A task that threw is gone on this rank: the last message of it.
struct Failed {
  static constexpr const char* kKind = "failed";
  graph::Task task;
  std::string cause;
  int exit_code = 1;       // of the error (base/error.h)
  bool retryable = false;  // a RetryableError, of a rank that is in no group: an aborted one works no more
  bool follows = false;    // from the failure of another rank, which says itself what its cause is

  COLLIMATE_FIELDS(task, cause, exit_code, retryable, follows)
};

// A sign of life from inside long work, which nothing answers.
struct Heartbeat {
  static constexpr const char* kKind = "heartbeat";
  static void fields(auto&, auto&&) {}
};

// ---- requests of the driver, each with a number of its own, and their answers, which repeat it

struct Done {
  static constexpr const char* kKind = "done";
  int64_t request = 0;
  COLLIMATE_FIELDS(request)
};

// A model has been moved in this time, by base::now_seconds() of the worker's machine.
struct Resided {
  static constexpr const char* kKind = "resided";
  int64_t request = 0;
  double begin_seconds = 0, end_seconds = 0;
  COLLIMATE_FIELDS(request, begin_seconds, end_seconds)
};

// Moves a model to its devices or off them, by Module::reside.
struct Reside {
  static constexpr const char* kKind = "reside";
  using Answer = Resided;
  int64_t request = 0;
  std::string model;
  bool on_device = true;

  COLLIMATE_FIELDS(request, model, on_device)
};

// The worker writes the parts that these models have of a checkpoint into the directory. All are on their devices.
struct Save {
  static constexpr const char* kKind = "save";
  using Answer = Done;
  int64_t request = 0;
  std::string directory;
  std::vector<std::string> models;  // those of them that the worker has

  COLLIMATE_FIELDS(request, directory, models)
};

// The worker reads its part of the checkpoint in the directory. Swapped models are away before and after.
struct Load {
  static constexpr const char* kKind = "load";
  using Answer = Done;
  int64_t request = 0;
  std::string directory;

  COLLIMATE_FIELDS(request, directory)
};

struct MemoryReport {
  static constexpr const char* kKind = "memory_report";
  int64_t request = 0;
  nlohmann::json memory;  // MemoryLedger::report

  COLLIMATE_FIELDS(request, memory)
};

// Asks for the memory that a worker has used, when a run has ended.
struct AskMemory {
  static constexpr const char* kKind = "ask_memory";
  using Answer = MemoryReport;
  int64_t request = 0;
  COLLIMATE_FIELDS(request)
};

struct Exported {
  static constexpr const char* kKind = "exported";
  int64_t request = 0;
  std::optional<uint64_t> checksum;  // of the model's weights, where it has any

  COLLIMATE_FIELDS(request, checksum)
};

// To the workers that hold a model's first copy between them: Module::save_checkpoint.
struct Export {
  static constexpr const char* kKind = "export";
  using Answer = Exported;
  int64_t request = 0;
  std::string model;
  std::string directory;
  int64_t iteration = 0;

  COLLIMATE_FIELDS(request, model, directory, iteration)
};

// A link's transfer to a worker that has the same part of both of its models.
struct WeightsHere {
  static constexpr const char* kKind = "weights_here";
  using Answer = Done;
  int64_t request = 0;
  std::string source;
  std::string destination;

  COLLIMATE_FIELDS(request, source, destination)
};

struct Weights {
  static constexpr const char* kKind = "weights";
  int64_t request = 0;
  std::shared_ptr<const WeightBucket> bucket;  // null: there are no more

  COLLIMATE_FIELDS(request, bucket)
};

// Asks a worker of the source for one of the buckets that go from it to a worker of the destination. All workers to
// which the transfer goes are named, as who gives what depends on them (shape::plan_transfer).
struct WeightsOut {
  static constexpr const char* kKind = "weights_out";
  using Answer = Weights;
  int64_t request = 0;
  std::string source;
  std::string destination;
  std::vector<int> workers;
  int to = 0;  // one of them
  int64_t bucket = 0;

  COLLIMATE_FIELDS(request, source, destination, workers, to, bucket)
};

// One of the buckets, to the worker of the destination.
struct WeightsIn {
  static constexpr const char* kKind = "weights_in";
  using Answer = Done;
  int64_t request = 0;
  std::string source;
  std::string destination;
  int64_t transfer = 0;  // its number: what came of an earlier one counts no more
  std::shared_ptr<const WeightBucket> bucket;

  COLLIMATE_FIELDS(request, source, destination, transfer, bucket)
};

// All buckets have gone to that worker.
struct WeightsEnd {
  static constexpr const char* kKind = "weights_end";
  using Answer = Done;
  int64_t request = 0;
  std::string source;
  std::string destination;
  int64_t transfer = 0;

  COLLIMATE_FIELDS(request, source, destination, transfer)
};

// A worker understands these: WorkerHost has an `on` for each.
using ToWorker = std::variant<Puts, Start, Feed, Close, Cancel, Pause, Ended, Reside, Save, Load, AskMemory, Export,
                              WeightsHere, WeightsOut, WeightsIn, WeightsEnd>;
// The driver understands these: Drive has an `on` for each that Driver does not take itself.
using ToDriver = std::variant<cluster::Ready, cluster::Died, Puts, Rows, Finished, Failed, Heartbeat, Done, Resided,
                              MemoryReport, Exported, Weights>;

}  // namespace collimate::flow::message
