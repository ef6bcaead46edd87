#include "collimate/graph/event.h"

#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

std::string on_worker(int worker) { return worker < 0 ? "" : fmt::format(" on {}", worker); }

}  // namespace

void to_json(nlohmann::json& out, const Task& task) { out = {task.iteration, task.node, task.replica, task.part}; }

void from_json(const nlohmann::json& in, Task& task) {
  in.at(0).get_to(task.iteration);
  in.at(1).get_to(task.node);
  in.at(2).get_to(task.replica);
  in.at(3).get_to(task.part);
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
Event Event::evaluated(int64_t iteration) { return {.kind = EventKind::kEvaluated, .iteration = iteration}; }

std::string describe(const Graph& graph, const Task& task) {
  std::string text = fmt::format("{}/{}/r{}", task.iteration, graph.node(task.node).id, task.replica);
  return task.part == 0 ? text : text + fmt::format(".{}", task.part);
}

std::string describe(const Graph& graph, const Event& event) {
  const auto rows = [&] { return fmt::format(" {}+{}", event.first, event.count); };
  const auto task = [&] { return describe(graph, event.task); };
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
    case EventKind::kEvaluated:
      return fmt::format("evaluated {}", event.iteration);
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

std::string describe_stop(const Action& action) {
  if (action.stop == StopKind::kDone) return "stop: done";
  return (action.stop == StopKind::kAsked ? "stop, asked: " : "stop, failed: ") + action.cause;
}

}  // namespace

std::string describe(const Graph& graph, const Action& action) {
  const auto task = [&] { return describe(graph, action.task); };
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
    case ActionKind::kSave:
      return fmt::format("save {}", action.iteration);
    case ActionKind::kEvaluate:
      return fmt::format("evaluate {}", action.iteration);
    case ActionKind::kStop:
      return describe_stop(action);
  }
  return "";
}

}  // namespace collimate::graph
