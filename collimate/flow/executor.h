#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/span.h"
#include "collimate/base/stop.h"
#include "collimate/batch/batch.h"
#include "collimate/flow/checkpoints.h"
#include "collimate/flow/registry.h"
#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"
#include "collimate/graph/schedule.h"
#include "collimate/tensor/operation_times.h"

namespace collimate::flow {

enum class Transport { kThreads, kProcesses };

// A ModuleChoice names the kind of module behind a model of the graph, and its parameters.
struct ModuleChoice {
  std::string kind;
  nlohmann::json parameters;
  // The model has weights of its own even where a worker also has the source of its link; otherwise both may be one
  // object.
  bool own_weights = false;
  // Where the model and the source of its link are on one worker, both are one object, and nothing moves along the
  // link.
  bool in_place = false;
};

// An IterationResult is what one finished iteration left. It is valid during the callback.
struct IterationResult {
  int64_t iteration = 0;
  const nlohmann::ordered_json& metrics;          // name → value, in a fixed order
  const std::map<std::string, Batch>& batches;    // by node id: its rows in order, with all columns that led to them
  double seconds = 0.0;                           // since the previous iteration ended, without evaluations between;
                                                  // an evaluation's: since it began
  std::map<std::string, std::string> notes = {};  // name of a metric → its note
};

// A RowSource returns rows [first, first + count) of an iteration's input, with uids unique in the iteration; sample r
// belongs to group r / group_size. Each row is asked for once: as many as the schedule has in the iteration at once,
// then multiples of the group size that replace dropped rows. The result must depend on the arguments alone, because
// iterations may overlap; where they do not (staleness 0) it may also depend on what `on_iteration` was told of earlier
// ones. It throws InputError when there are no rows.
using RowSource = std::function<Batch(int64_t iteration, int64_t first, int64_t count)>;

// An Evaluation is a second graph over the same models or models of its own, as graph::EvaluationGraph, and the source
// of its rows.
struct Evaluation {
  std::string name;  // "" or a name that no other evaluation of the run has; the journal tells them apart by it
  graph::Graph graph;
  int64_t rows = 0;
  int64_t group_size = 1;
  std::optional<int64_t> every = {};  // in iterations; nothing: schedule.evaluate_every
  std::optional<bool> first = {};     // also before the first iteration; nothing: schedule.evaluate_first
  RowSource next_rows;
  std::function<void(const IterationResult&)> on_result;  // with the iteration after which it ran; -1 before the first
};

std::vector<graph::EvaluationGraph> graphs_of(const std::vector<Evaluation>& evaluations);

// A CallTimes tells what one call of a function, or a piece of a stream's work, took on a worker. It is valid in the
// callback.
struct CallTimes {
  const std::string& node;
  int worker = 0;
  int64_t iteration = 0;
  double begin_seconds = 0, end_seconds = 0;             // base::now_seconds() of the worker's machine
  double busy_seconds = 0;                               // how much of that time was spent in the function
  const std::vector<tensor::OperationTime>& operations;  // of its thread on the device
};

// A RunEnd is what the workers are asked when a run has ended.
struct RunEnd {
  nlohmann::json memory;                      // a list with the MemoryLedger::report of each worker
  std::map<std::string, uint64_t> checksums;  // by exported model: checksum of its weights
  std::string exported;                       // the checkpoint that they are of; "": the state at the run's end
};

// RunOptions say how a run is driven. Callbacks run on the driver's thread; an exception from them stops the run.
struct RunOptions {
  graph::ScheduleOptions schedule;  // iterations, rows, group size, saving and evaluation frequencies
  uint64_t seed = 0;
  nlohmann::json config;                        // the whole resolved config
  std::map<std::string, ModuleChoice> modules;  // by model; an absent model has the kind of its own name

  RowSource next_rows;
  std::function<void(const IterationResult&)> on_iteration;
  std::vector<Evaluation> evaluations;   // one after the other, whenever the schedule asks for them
  std::vector<base::Stateful*> state;    // of the driver's side: data cursor, controllers; saved in order
  const base::StopFlag* stop = nullptr;  // when requested, the run saves and ends with StoppedError
  std::function<void()> on_poll;         // called before each look at `stop`: at least every 0.2 s while the run waits
  base::SpanRecorder* spans = nullptr;   // gets the time of every call
  std::function<void(const CallTimes&)> on_call;  // only for the run's graph; makes workers time operations

  // The run's directory: checkpoints/step-NNNNNN, journal.bin, events.jsonl. "" keeps nothing on disk.
  std::string directory;
  Retention keep;                              // if it has values, the best measured checkpoint is exported
  std::map<std::string, std::string> exports;  // model → directory for its save_checkpoint at the end of the run
  std::string resume;                          // directory of a complete checkpoint, or ""
  std::function<void()> on_resumed;            // called when all is loaded; if `stop` is requested there, nothing runs
  std::string replay;                          // a journal that serves all nondeterministic results, or ""

  Transport transport = Transport::kThreads;
  std::vector<std::string> worker_command;  // of a child process, before `--store ADDR`; {}: this program's `worker`
  double deadline_seconds = 600.0;          // longest wait without progress
  int64_t memory_budget_bytes = 0;          // of each worker's device memory; 0: none
  std::string swap_directory;  // where models are while off their device; "": the run's, or a temporary one
  std::function<void(const RunEnd&)> on_end;  // called when all is done, before the workers end
  int threads_per_worker = 1;                 // size of the core pool of each device's worker
  bool names_places = true;                   // errors of failed calls name model, worker, iteration and node
};

struct RunResult {
  int64_t iterations = 0;  // number that this process ran
  nlohmann::ordered_json last_metrics;
};

// Runs the graph to the end on the placement's devices. Workers' replies become events of a Schedule, and its actions
// become messages. Throws the first cause of a failure, with its model, rank and sample in the message and as the class
// (hence exit code) of the original, and StoppedError after a stop with its state saved. Blocks; one run per thread.
RunResult run(const graph::Graph& graph, const graph::Placement& placement, const Registry& registry,
              const RunOptions& options);

// Runs `collimate worker --store ADDR`: joins the run at that address, works until told to stop, and returns the exit
// code. Throws RunError when nobody listens there.
int run_worker(const std::string& address, const Registry& registry);

}  // namespace collimate::flow
