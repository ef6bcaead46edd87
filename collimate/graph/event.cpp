#include "collimate/graph/event.h"

#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

std::string on_worker(int worker) { return worker < 0 ? "" : fmt::format(" on {}", worker); }

}  // namespace

void to_json(nlohmann::json& out, const Task& task) {
  out = {task.iteration, task.node, task.replica, task.part};
  if (task.graph != 0) out.push_back(task.graph);
}

void from_json(const nlohmann::json& in, Task& task) {
  in.at(0).get_to(task.iteration);
  in.at(1).get_to(task.node);
  in.at(2).get_to(task.replica);
  in.at(3).get_to(task.part);
  task.graph = in.size() > 4 ? in.at(4).get<int>() : 0;
}

Event Event::begin() { return {}; }
Event Event::rows(const Task& task, int64_t first, int64_t count) {
  return {.kind = EventKind::kRows, .task = task, .first = first, .count = count};
}
Event Event::dropped(const Task& task, int64_t first, int64_t count) {
  return {.kind = EventKind::kDropped, .task = task, .first = first, .count = count};
}
Event Event::finished(const Task& task) { return {.kind = EventKind::kFinished, .task = task}; }
Event Event::failed(const Task& task, bool retryable, std::string cause) {
  return {.kind = EventKind::kFailed, .task = task, .retryable = retryable, .cause = std::move(cause)};
}
Event Event::resident_at(std::string model, int worker, bool resident) {
  return {.kind = EventKind::kResident, .resident = resident, .model = std::move(model), .worker = worker};
}
Event Event::weights_at(std::string model, int64_t version, int worker) {
  return {.kind = EventKind::kWeightsAt, .model = std::move(model), .version = version, .worker = worker};
}
Event Event::lost(int worker, std::string cause) {
  return {.kind = EventKind::kLost, .worker = worker, .cause = std::move(cause)};
}
Event Event::back(int worker) { return {.kind = EventKind::kBack, .worker = worker}; }
Event Event::expired(int timer) { return {.kind = EventKind::kExpired, .timer = timer}; }
Event Event::asked(Ask ask) { return {.kind = EventKind::kAsked, .ask = ask}; }

namespace {

// Returns "evaluation held-out ", or "" for the run's own graph.
std::string begin_of(const NamedGraphs& graphs, int graph) {
  if (graph == 0) return "";
  const std::string& name = base::at(graphs.evaluations, graph - 1).name;
  return name.empty() ? "evaluation " : fmt::format("evaluation {} ", name);
}

}  // namespace

std::string describe(const NamedGraphs& graphs, const Task& task) {
  std::string text = fmt::format("{}{}/{}/r{}", begin_of(graphs, task.graph), task.iteration,
                                 graphs.of(task.graph).node(task.node).id, task.replica);
  return task.part == 0 ? text : text + fmt::format(".{}", task.part);
}

std::string describe(const NamedGraphs& graphs, const Event& event) {
  const auto rows = [&] { return fmt::format(" {}+{}", event.first, event.count); };
  const auto task = [&] { return describe(graphs, event.task); };
  switch (event.kind) {
    case EventKind::kBegin:
      return "begin";
    case EventKind::kRows:
      return "rows " + task() + rows();
    case EventKind::kDropped:
      return "dropped " + task() + rows();
    case EventKind::kFinished:
      return "finished " + task();
    case EventKind::kFailed:
      return fmt::format("failed {} {}: {}", task(), event.retryable ? "retryable" : "for good", event.cause);
    case EventKind::kResident:
      return fmt::format("{} on {} is {}", event.model, event.worker, event.resident ? "loaded" : "off-loaded");
    case EventKind::kWeightsAt:
      return fmt::format("weights {}{} at {}", event.model, on_worker(event.worker), event.version);
    case EventKind::kLost:
      return fmt::format("lost worker {}: {}", event.worker, event.cause);
    case EventKind::kBack:
      return fmt::format("back worker {}", event.worker);
    case EventKind::kExpired:
      return fmt::format("expired timer {}", event.timer);
    case EventKind::kAsked:
      return std::string("asked to ") + (event.ask == Ask::kStop   ? "stop"
                                         : event.ask == Ask::kSave ? "save"
                                                                   : "evaluate");
  }
  return "";
}

namespace {

std::string describe_transition(const Action& action) {
  const std::string what = action.model + on_worker(action.worker);
  if (action.transition == TransitionKind::kLoad) return "load " + what;
  if (action.transition == TransitionKind::kOffload) return "offload " + what;
  return fmt::format("weights {} -> {} at {}", action.source, what, action.version);
}

std::string describe_evaluated(const NamedGraphs& graphs, const Action& action) {
  const std::string& name = base::at(graphs.evaluations, action.graph - 1).name;
  return fmt::format("evaluated {}{}", action.iteration, name.empty() ? "" : " by " + name);
}

std::string describe_stop(const Action& action) {
  if (action.stop == StopKind::kDone) return "stop: done";
  return (action.stop == StopKind::kAsked ? "stop, asked: " : "stop, failed: ") + action.cause;
}

}  // namespace

std::string describe(const NamedGraphs& graphs, const Action& action) {
  const auto task = [&] { return describe(graphs, action.task); };
  switch (action.kind) {
    case ActionKind::kStart:
      return fmt::format("start {} on {}", task(), fmt::join(action.workers, ","));
    case ActionKind::kFeed:
      return fmt::format("feed {} {}+{}", task(), action.first, action.count);
    case ActionKind::kClose:
      return "close " + task();
    case ActionKind::kCancel:
      return "cancel " + task();
    case ActionKind::kPause:
      return "pause " + action.model;
    case ActionKind::kResume:
      return "resume " + action.model;
    case ActionKind::kTransition:
      return describe_transition(action);
    case ActionKind::kArm:
      return fmt::format("arm timer {} {}s", action.timer, action.seconds);
    case ActionKind::kSaveModel:
      return fmt::format("save {} of {}", action.model, action.iteration);
    case ActionKind::kSave:
      return fmt::format("save {}", action.iteration);
    case ActionKind::kEvaluated:
      return describe_evaluated(graphs, action);
    case ActionKind::kStop:
      return describe_stop(action);
  }
  return "";
}

}  // namespace collimate::graph
