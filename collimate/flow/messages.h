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

// This is the protocol between the driver and the workers of a run, one struct for each kind of message. Each worker
// gets its messages in the order in which the driver sent them, and the driver gets those of a worker in the worker's
// order.
namespace collimate::flow::message {

// A Puts goes both ways, ahead of the message that it comes with: it has what models have put into the SharedStore and
// the receiver has not been told. A worker puts it into its replica; the driver keeps it and tells the other workers.
struct Puts {
  static constexpr const char* kKind = "puts";
  std::vector<StoreEntry> entries;
  COLLIMATE_FIELDS(entries)
};

// ---- from the driver to a worker: tasks

// A Start begins a task on every rank of its replica. It is answered only by what comes of the rows that are fed, or by
// Failed.
struct Start {
  static constexpr const char* kKind = "start";
  graph::Task task;
  int64_t iteration = 0;  // the iteration to which its calls count
  std::string node;
  std::string model;
  std::string function;
  nlohmann::json parameters;  // of the node
  bool trains = false;
  bool streams = false;
  int rank = 0;  // of the worker in the replica

  COLLIMATE_FIELDS(task, iteration, node, model, function, parameters, trains, streams, rank)
};

// A Feed has this rank's share of rows for a task. A function that streams answers with Rows as they are finished, any
// other with Rows of the same number. A task that has failed ignores it.
struct Feed {
  static constexpr const char* kKind = "feed";
  graph::Task task;
  int64_t feed = 0;            // its number in the task
  std::vector<Batch> batches;  // one, or one for each update of a function that trains

  COLLIMATE_FIELDS(task, feed, batches)
};

// A Close says that nothing more is fed. Finished answers it when all that was fed is done.
struct Close {
  static constexpr const char* kKind = "close";
  graph::Task task;
  COLLIMATE_FIELDS(task)
};

// A Cancel ends a task at once, or at the next step where ranks step in lockstep. There is no answer; what still comes
// of the task is ignored.
struct Cancel {
  static constexpr const char* kKind = "cancel";
  graph::Task task;
  COLLIMATE_FIELDS(task)
};

// A Pause makes the streams of a model stop between two steps, while its weights change, or go on. There is no answer.
struct Pause {
  static constexpr const char* kKind = "pause";
  std::string model;
  bool paused = true;

  COLLIMATE_FIELDS(model, paused)
};

// An Ended says that an iteration has ended, so that the SharedStore forgets values that newer ones have replaced.
// There is no answer.
struct Ended {
  static constexpr const char* kKind = "ended";
  int64_t iteration = 0;

  COLLIMATE_FIELDS(iteration)
};

// ---- from the worker to the driver: tasks

// Rows are the rows that came out of a task, and what its work since the last ones took. They answer a Feed; a stream
// sends them as they come.
struct Rows {
  static constexpr const char* kKind = "rows";
  graph::Task task;
  std::optional<int64_t> feed;  // nothing for a stream
  int rank = 0;                 // of the worker in the replica
  Batch rows;                   // fed rows that are missing were dropped; no columns at all: nothing is said of them
  std::vector<Metric> metrics;
  double begin_seconds = 0;  // base::now_seconds() of the worker's machine; 0: there was no work
  double end_seconds = 0;
  double busy_seconds = 0;                        // how much of that time was spent in the function
  int64_t peak_bytes = 0;                         // most memory of the worker meanwhile
  std::vector<tensor::OperationTime> operations;  // if RunOptions::on_call asks for them

  COLLIMATE_FIELDS(task, feed, rank, rows, metrics, begin_seconds, end_seconds, busy_seconds, peak_bytes, operations)
};

// A Finished says that a task that was closed has done everything on this rank. It is the last message of the task.
struct Finished {
  static constexpr const char* kKind = "finished";
  graph::Task task;
  COLLIMATE_FIELDS(task)
};

// A Failed says that a task threw and is gone on this rank. It is the last message of the task.
struct Failed {
  static constexpr const char* kKind = "failed";
  graph::Task task;
  std::string cause;
  int exit_code = 1;       // of the error (base/error.h)
  bool retryable = false;  // a RetryableError on a rank without a group, as an aborted group works no more
  bool follows = false;    // follows from the failure of another rank, which reports the cause itself

  COLLIMATE_FIELDS(task, cause, exit_code, retryable, follows)
};

// A Heartbeat is a sign of life from inside long work. Nothing answers it.
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

// A Resided says when a model was moved, by base::now_seconds() of the worker's machine.
struct Resided {
  static constexpr const char* kKind = "resided";
  int64_t request = 0;
  double begin_seconds = 0, end_seconds = 0;
  COLLIMATE_FIELDS(request, begin_seconds, end_seconds)
};

// A Reside moves a model to its devices or off them, by Module::reside.
struct Reside {
  static constexpr const char* kKind = "reside";
  using Answer = Resided;
  int64_t request = 0;
  std::string model;
  bool on_device = true;

  COLLIMATE_FIELDS(request, model, on_device)
};

// On a Save the worker writes its parts of these models into a checkpoint's directory. All models that keep state are
// on their devices.
struct Save {
  static constexpr const char* kKind = "save";
  using Answer = Done;
  int64_t request = 0;
  std::string directory;
  std::vector<std::string> models;  // the worker saves those that it has

  COLLIMATE_FIELDS(request, directory, models)
};

// On a Load the worker reads its part of the checkpoint in the directory. Swapped models are off their devices before
// and after.
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

// An AskMemory asks how much memory a worker has used, when a run has ended.
struct AskMemory {
  static constexpr const char* kKind = "ask_memory";
  using Answer = MemoryReport;
  int64_t request = 0;
  COLLIMATE_FIELDS(request)
};

struct Exported {
  static constexpr const char* kKind = "exported";
  int64_t request = 0;
  std::optional<uint64_t> checksum;  // of the model's weights, if it has any

  COLLIMATE_FIELDS(request, checksum)
};

// An Export calls Module::save_checkpoint on the workers that together hold a model's first copy.
struct Export {
  static constexpr const char* kKind = "export";
  using Answer = Exported;
  int64_t request = 0;
  std::string model;
  std::string directory;
  int64_t iteration = 0;

  COLLIMATE_FIELDS(request, model, directory, iteration)
};

// A WeightsHere is a link's transfer within a worker that has the same part of both of its models.
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
  std::shared_ptr<const WeightBucket> bucket;  // null when there are no more

  COLLIMATE_FIELDS(request, bucket)
};

// A WeightsOut asks a worker of the source for one of the buckets that go from it to a worker of the destination. It
// names all workers to which the transfer goes, as who sends what depends on them (shape::plan_transfer).
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

// A WeightsIn brings one of the buckets to the worker of the destination.
struct WeightsIn {
  static constexpr const char* kKind = "weights_in";
  using Answer = Done;
  int64_t request = 0;
  std::string source;
  std::string destination;
  int64_t transfer = 0;  // its number; what came of an earlier transfer is ignored
  std::shared_ptr<const WeightBucket> bucket;

  COLLIMATE_FIELDS(request, source, destination, transfer, bucket)
};

// A WeightsEnd says that all buckets have gone to that worker.
struct WeightsEnd {
  static constexpr const char* kKind = "weights_end";
  using Answer = Done;
  int64_t request = 0;
  std::string source;
  std::string destination;
  int64_t transfer = 0;

  COLLIMATE_FIELDS(request, source, destination, transfer)
};

// These are the messages that a worker understands: WorkerHost has an `on` for each.
using ToWorker = std::variant<Puts, Start, Feed, Close, Cancel, Pause, Ended, Reside, Save, Load, AskMemory, Export,
                              WeightsHere, WeightsOut, WeightsIn, WeightsEnd>;
// These are the messages that the driver understands: Drive has an `on` for each that Driver does not handle itself.
using ToDriver = std::variant<cluster::Ready, cluster::Died, Puts, Rows, Finished, Failed, Heartbeat, Done, Resided,
                              MemoryReport, Exported, Weights>;

}  // namespace collimate::flow::message
