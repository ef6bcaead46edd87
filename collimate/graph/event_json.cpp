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

Task task_from_json(const json& value) {
  return {value.at(0).get<int64_t>(), value.at(1).get<int>(), value.at(2).get<int>(), value.at(3).get<int>()};
}

// Writes or reads named fields; one list of fields per kind serves both directions.
struct Writer {
  json& out;
  template <class T>
  void operator()(const char* key, const T& value) {
    out[key] = value;
  }
  void operator()(const char* key, const Task& value) { out[key] = to_json(value); }
  template <class Enum, size_t N>
  void operator()(const char* key, const Words<Enum, N>& words, const Enum& value) {
    out[key] = words.name(value);
  }
};
struct Reader {
  const json& in;
  template <class T>
  void operator()(const char* key, T& value) {
    value = in.at(key).get<T>();
  }
  void operator()(const char* key, Task& value) { value = task_from_json(in.at(key)); }
  template <class Enum, size_t N>
  void operator()(const char* key, const Words<Enum, N>& words, Enum& value) {
    value = words.parse(key, in.at(key).get<std::string>());
  }
};

template <class Visitor, class E>
void fields(Visitor visit, E& e) requires std::is_same_v<std::remove_const_t<E>, Event> {
  switch (e.kind) {
    case EventKind::kBegin:
      return;
    case EventKind::kRows:
    case EventKind::kDropped:
      visit("task", e.task), visit("first", e.first), visit("count", e.count);
      return;
    case EventKind::kFinished:
      return visit("task", e.task);
    case EventKind::kFailed:
      visit("task", e.task), visit("retryable", e.retryable), visit("cause", e.cause);
      return;
    case EventKind::kResident:
      visit("model", e.model), visit("worker", e.worker), visit("resident", e.resident);
      return;
    case EventKind::kWeightsAt:
      visit("model", e.model), visit("version", e.version), visit("worker", e.worker);
      return;
    case EventKind::kLost:
      visit("worker", e.worker), visit("cause", e.cause);
      return;
    case EventKind::kBack:
      return visit("worker", e.worker);
    case EventKind::kExpired:
      return visit("timer", e.timer);
    case EventKind::kAsked:
      return visit("ask", kAsks, e.ask);
    case EventKind::kEvaluated:
      return visit("iteration", e.iteration);
  }
}

template <class Visitor, class A>
void fields(Visitor visit, A& a) requires std::is_same_v<std::remove_const_t<A>, Action> {
  switch (a.kind) {
    case ActionKind::kStart:
      visit("task", a.task), visit("workers", a.workers);
      return;
    case ActionKind::kFeed:
      visit("task", a.task), visit("first", a.first), visit("count", a.count);
      return;
    case ActionKind::kClose:
    case ActionKind::kCancel:
      return visit("task", a.task);
    case ActionKind::kPause:
    case ActionKind::kResume:
      return visit("model", a.model);
    case ActionKind::kTransition:
      visit("transition", kTransitions, a.transition), visit("model", a.model), visit("source", a.source);
      visit("worker", a.worker), visit("version", a.version);
      return;
    case ActionKind::kArm:
      visit("timer", a.timer), visit("seconds", a.seconds);
      return;
    case ActionKind::kSave:
    case ActionKind::kEvaluate:
      return visit("iteration", a.iteration);
    case ActionKind::kStop:
      visit("stop", kStops, a.stop), visit("cause", a.cause);
      return;
  }
}

template <class T, class Enum, size_t N>
T read(const json& value, const Words<Enum, N>& kinds) {
  try {
    T made;
    Reader{value}("kind", kinds, made.kind);
    fields(Reader{value}, made);
    return made;
  } catch (const json::exception&) {
    throw base::InputError(base::expectation(kinds.what, std::string("the fields of its kind"), value.dump()));
  }
}

}  // namespace

json to_json(const Event& event) {
  json made{{"kind", kEvents.name(event.kind)}};
  fields(Writer{made}, event);
  return made;
}

json to_json(const Action& action) {
  json made{{"kind", kActions.name(action.kind)}};
  fields(Writer{made}, action);
  return made;
}

Event event_from_json(const json& value) { return read<Event>(value, kEvents); }
Action action_from_json(const json& value) { return read<Action>(value, kActions); }

}  // namespace collimate::graph
