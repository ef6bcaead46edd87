#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/fields.h"
#include "collimate/base/words.h"
#include "collimate/graph/evaluation_graph.h"
#include "collimate/graph/graph.h"

namespace collimate::graph {

// Returns an iteration as messages and metrics (`step`) count it, from 1; events, tasks and files count from 0.
constexpr int64_t step_of(int64_t iteration) { return iteration + 1; }

// A Task is one call of a node on one replica in one iteration. When the node is called there again in the same
// iteration (rows moved from a failed replica, filtered rows refilled), the new task has the next part. An evaluation's
// task has the iteration after which it takes place, -1 before the first.
struct Task {
  int64_t iteration = 0;
  int node = 0;  // index in Graph::nodes of its graph
  int replica = 0;
  int part = 0;
  int graph = 0;  // 0: the run's own graph; n: that of its evaluation n - 1
  auto operator<=>(const Task&) const = default;
};

// In JSON a task is [iteration, node, replica, part], and the graph where it is not the run's own.
void to_json(nlohmann::json& out, const Task& task);
void from_json(const nlohmann::json& in, Task& task);

// Events number rows within an iteration: row r is sample r % group_size of sample group r / group_size; refilled rows
// get new numbers after the first `rows`. Every node that handles a sample uses its number, so a row's columns are
// joined by it.
enum class EventKind {
  kBegin,    // first event; on a loaded schedule: what was open is started again
  kRows,     // task: rows [first, first + count) have their outputs; of an iteration-granular node only Finished counts
  kDropped,  // task: rows [first, first + count) were fed and will have no outputs
  kFinished,   // task: it was closed, and its workers are free; fed rows without another event have outputs
  kFailed,     // task, retryable, cause: the task is gone; its open rows are done again, or the run stops
  kResident,   // model, worker, resident: a load or off-load is complete
  kWeightsAt,  // model, version, worker as in its Transition: a weight transfer is complete
  kLost,       // worker, cause: it and its tasks are gone; rows already given stay
  kBack,       // worker: it works again, with models as at setup
  kExpired,    // timer
  kAsked,      // ask
};
constexpr auto words_of(EventKind) {
  return base::Words<EventKind, 11>{
      "event",
      {"begin", "rows", "dropped", "finished", "failed", "resident", "weights_at", "lost", "back", "expired", "asked"}};
}
enum class Ask { kStop, kSave, kEvaluate };
constexpr auto words_of(Ask) { return base::Words<Ask, 3>{"ask", {"stop", "save", "evaluate"}}; }

// An Event tells a schedule what happened. Fields that its kind does not name keep their defaults.
struct Event {
  EventKind kind = EventKind::kBegin;
  Task task;
  int64_t first = 0;
  int64_t count = 0;
  bool retryable = false;
  bool resident = false;
  std::string model;
  int64_t version = 0;
  int worker = -1;
  int timer = -1;
  Ask ask = Ask::kStop;
  std::string cause;
  bool operator==(const Event&) const = default;

  // Passes to `field` the event's kind and the fields that this kind has.
  static void fields(auto& self, auto&& field) {
    using enum EventKind;
    const auto is = [&](auto... kinds) { return ((self.kind == kinds) || ...); };
    field("kind", self.kind);
    if (is(kRows, kDropped, kFinished, kFailed)) field("task", self.task);
    if (is(kRows, kDropped)) field("first", self.first);
    if (is(kRows, kDropped)) field("count", self.count);
    if (is(kFailed)) field("retryable", self.retryable);
    if (is(kFailed, kLost)) field("cause", self.cause);
    if (is(kResident, kWeightsAt)) field("model", self.model);
    if (is(kResident, kWeightsAt, kLost, kBack)) field("worker", self.worker);
    if (is(kResident)) field("resident", self.resident);
    if (is(kWeightsAt)) field("version", self.version);
    if (is(kExpired)) field("timer", self.timer);
    if (is(kAsked)) field("ask", self.ask);
  }

  static Event begin();
  static Event rows(const Task& task, int64_t first, int64_t count);
  static Event dropped(const Task& task, int64_t first, int64_t count);
  static Event finished(const Task& task);
  static Event failed(const Task& task, bool retryable, std::string cause);
  static Event resident_at(std::string model, int worker, bool resident);
  static Event weights_at(std::string model, int64_t version, int worker = -1);
  static Event lost(int worker, std::string cause);
  static Event back(int worker);
  static Event expired(int timer);
  static Event asked(Ask ask);
};

enum class ActionKind {
  kStart,       // task, workers: call the node's function on these workers
  kFeed,        // task: rows [first, first + count) are its input, with the columns of the node's input values
  kClose,       // task: nothing more is fed
  kCancel,      // task: stop it if it still runs; its events no longer count
  kPause,       // model: its running service stops stepping
  kResume,      // model
  kTransition,  // transition, model, worker: kLoad, kOffload → Resident; kWeights, source, version → WeightsAt
  kArm,         // timer, seconds → Expired
  kSaveModel,   // iteration, model: save that swapped model, now on its workers, for the checkpoint of the next kSave
  kSave,        // iteration: save the state after it; no later training has started
  kEvaluated,   // graph, iteration: that evaluation's tasks after the iteration are all done
  kStop,        // stop, cause: the last action ever
};
constexpr auto words_of(ActionKind) {
  return base::Words<ActionKind, 12>{"action",
                                     {"start", "feed", "close", "cancel", "pause", "resume", "transition", "arm",
                                      "save_model", "save", "evaluated", "stop"}};
}
enum class TransitionKind { kLoad, kOffload, kWeights };
constexpr auto words_of(TransitionKind) {
  return base::Words<TransitionKind, 3>{"transition", {"load", "offload", "weights"}};
}
enum class StopKind { kDone, kAsked, kFailed };
constexpr auto words_of(StopKind) { return base::Words<StopKind, 3>{"stop", {"done", "asked", "failed"}}; }

struct Action {
  ActionKind kind = ActionKind::kStop;
  Task task;
  std::vector<int> workers;
  int64_t first = 0;
  int64_t count = 0;
  int64_t iteration = 0;
  int graph = 0;
  TransitionKind transition = TransitionKind::kLoad;
  std::string model;
  std::string source;
  int worker = -1;  // of a weight transfer's destination; -1: all of the model's workers
  int64_t version = 0;
  int timer = -1;
  double seconds = 0;
  StopKind stop = StopKind::kDone;
  std::string cause;
  bool operator==(const Action&) const = default;

  // Passes to `field` the action's kind and the fields that this kind has.
  static void fields(auto& self, auto&& field) {
    using enum ActionKind;
    const auto is = [&](auto... kinds) { return ((self.kind == kinds) || ...); };
    field("kind", self.kind);
    if (is(kStart, kFeed, kClose, kCancel)) field("task", self.task);
    if (is(kStart)) field("workers", self.workers);
    if (is(kFeed)) field("first", self.first);
    if (is(kFeed)) field("count", self.count);
    if (is(kPause, kResume, kTransition, kSaveModel)) field("model", self.model);
    if (is(kTransition)) field("transition", self.transition);
    if (is(kTransition)) field("source", self.source);
    if (is(kTransition)) field("worker", self.worker);
    if (is(kTransition)) field("version", self.version);
    if (is(kArm)) field("timer", self.timer);
    if (is(kArm)) field("seconds", self.seconds);
    if (is(kSaveModel, kSave, kEvaluated)) field("iteration", self.iteration);
    if (is(kEvaluated)) field("graph", self.graph);
    if (is(kStop)) field("stop", self.stop);
    if (is(kStop)) field("cause", self.cause);
  }
};

// A NamedGraphs refers to the graphs that tasks belong to, for texts that people read: the run's own and those of its
// evaluations.
struct NamedGraphs {
  NamedGraphs(const Graph& of_run,
              std::span<const EvaluationGraph> of_evaluations = {})  // NOLINT: a graph alone is one
      : run(of_run), evaluations(of_evaluations) {}
  const Graph& run;
  std::span<const EvaluationGraph> evaluations;
  const Graph& of(int graph) const { return graph == 0 ? run : base::at(evaluations, graph - 1).graph; }
};

// These return one readable line each, as in the text traces: "rows 0/policy.generate/r0 0+8". An evaluation's task
// begins with the name of the evaluation: "rows evaluation held-out 0/policy.generate/r0 0+8".
std::string describe(const NamedGraphs& graphs, const Task& task);
std::string describe(const NamedGraphs& graphs, const Event& event);
std::string describe(const NamedGraphs& graphs, const Action& action);

}  // namespace collimate::graph
