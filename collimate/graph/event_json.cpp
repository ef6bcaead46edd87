#include "collimate/graph/event.h"
#include "collimate/graph/json_fields.h"

namespace collimate::graph {
namespace {

using nlohmann::json;

constexpr Words<EventKind, 12> kEvents{"event",
                                       {"begin", "rows", "dropped", "finished", "failed", "resident", "weights_at",
                                        "lost", "back", "expired", "asked", "evaluated"}};
constexpr Words<Ask, 3> kAsks{"ask", {"stop", "save", "evaluate"}};
constexpr Words<ActionKind, 11> kActions{
    "action", {"start", "feed", "close", "cancel", "pause", "resume", "transition", "arm", "save", "evaluate", "stop"}};
constexpr Words<TransitionKind, 3> kTransitions{"transition", {"load", "offload", "weights"}};
constexpr Words<StopKind, 3> kStops{"stop", {"done", "asked", "failed"}};

json to_json(const Task& task) { return {task.iteration, task.node, task.replica, task.part}; }

void add_fields(json& out, const Event& e) {
  switch (e.kind) {
    case EventKind::kBegin:
      return;
    case EventKind::kRows:
    case EventKind::kDropped:
      out.update({{"task", to_json(e.task)}, {"first", e.first}, {"count", e.count}});
      return;
    case EventKind::kFinished:
      return out.update({{"task", to_json(e.task)}});
    case EventKind::kFailed:
      out.update({{"task", to_json(e.task)}, {"retryable", e.retryable}, {"cause", e.cause}});
      return;
    case EventKind::kResident:
      out.update({{"model", e.model}, {"worker", e.worker}, {"resident", e.resident}});
      return;
    case EventKind::kWeightsAt:
      out.update({{"model", e.model}, {"version", e.version}, {"worker", e.worker}});
      return;
    case EventKind::kLost:
      out.update({{"worker", e.worker}, {"cause", e.cause}});
      return;
    case EventKind::kBack:
      return out.update({{"worker", e.worker}});
    case EventKind::kExpired:
      return out.update({{"timer", e.timer}});
    case EventKind::kAsked:
      return out.update({{"ask", kAsks.name(e.ask)}});
    case EventKind::kEvaluated:
      return out.update({{"iteration", e.iteration}});
  }
}

void add_fields(json& out, const Action& a) {
  switch (a.kind) {
    case ActionKind::kStart:
      out.update({{"task", to_json(a.task)}, {"workers", a.workers}});
      return;
    case ActionKind::kFeed:
      out.update({{"task", to_json(a.task)}, {"first", a.first}, {"count", a.count}});
      return;
    case ActionKind::kClose:
    case ActionKind::kCancel:
      return out.update({{"task", to_json(a.task)}});
    case ActionKind::kPause:
    case ActionKind::kResume:
      return out.update({{"model", a.model}});
    case ActionKind::kTransition:
      out.update({{"transition", kTransitions.name(a.transition)},
                  {"model", a.model},
                  {"source", a.source},
                  {"worker", a.worker},
                  {"version", a.version}});
      return;
    case ActionKind::kArm:
      out.update({{"timer", a.timer}, {"seconds", a.seconds}});
      return;
    case ActionKind::kSave:
    case ActionKind::kEvaluate:
      return out.update({{"iteration", a.iteration}});
    case ActionKind::kStop:
      out.update({{"stop", kStops.name(a.stop)}, {"cause", a.cause}});
      return;
  }
}

}  // namespace

json to_json(const Event& event) {
  json made{{"kind", kEvents.name(event.kind)}};
  add_fields(made, event);
  return made;
}

json to_json(const Action& action) {
  json made{{"kind", kActions.name(action.kind)}};
  add_fields(made, action);
  return made;
}

}  // namespace collimate::graph
