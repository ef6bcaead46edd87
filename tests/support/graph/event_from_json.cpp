#include "collimate/graph/json_fields.h"
#include "tests/support/graph/replay.h"

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

Task task_of(const json& value) {
  return {value.at(0).get<int64_t>(), value.at(1).get<int>(), value.at(2).get<int>(), value.at(3).get<int>()};
}

struct Reader {
  const json& in;
  template <class T>
  void operator()(const char* key, T& value) const {
    value = in.at(key).get<T>();
  }
  void operator()(const char* key, Task& value) const { value = task_of(in.at(key)); }
  template <class Enum, size_t N>
  void operator()(const char* key, const Words<Enum, N>& words, Enum& value) const {
    value = words.parse(key, in.at(key).get<std::string>());
  }
};

void read_fields(const Reader& read, Event& e) {
  switch (e.kind) {
    case EventKind::kBegin:
      return;
    case EventKind::kRows:
    case EventKind::kDropped:
      read("task", e.task), read("first", e.first), read("count", e.count);
      return;
    case EventKind::kFinished:
      return read("task", e.task);
    case EventKind::kFailed:
      read("task", e.task), read("retryable", e.retryable), read("cause", e.cause);
      return;
    case EventKind::kResident:
      read("model", e.model), read("worker", e.worker), read("resident", e.resident);
      return;
    case EventKind::kWeightsAt:
      read("model", e.model), read("version", e.version), read("worker", e.worker);
      return;
    case EventKind::kLost:
      read("worker", e.worker), read("cause", e.cause);
      return;
    case EventKind::kBack:
      return read("worker", e.worker);
    case EventKind::kExpired:
      return read("timer", e.timer);
    case EventKind::kAsked:
      return read("ask", kAsks, e.ask);
    case EventKind::kEvaluated:
      return read("iteration", e.iteration);
  }
}

void read_fields(const Reader& read, Action& a) {
  switch (a.kind) {
    case ActionKind::kStart:
      read("task", a.task), read("workers", a.workers);
      return;
    case ActionKind::kFeed:
      read("task", a.task), read("first", a.first), read("count", a.count);
      return;
    case ActionKind::kClose:
    case ActionKind::kCancel:
      return read("task", a.task);
    case ActionKind::kPause:
    case ActionKind::kResume:
      return read("model", a.model);
    case ActionKind::kTransition:
      read("transition", kTransitions, a.transition), read("model", a.model), read("source", a.source);
      read("worker", a.worker), read("version", a.version);
      return;
    case ActionKind::kArm:
      read("timer", a.timer), read("seconds", a.seconds);
      return;
    case ActionKind::kSave:
    case ActionKind::kEvaluate:
      return read("iteration", a.iteration);
    case ActionKind::kStop:
      read("stop", kStops, a.stop), read("cause", a.cause);
      return;
  }
}

template <class T, class Enum, size_t N>
T made_from(const json& value, const Words<Enum, N>& kinds) {
  try {
    T made;
    Reader{value}("kind", kinds, made.kind);
    read_fields(Reader{value}, made);
    return made;
  } catch (const json::exception&) {
    throw base::InputError(base::expectation(kinds.what, std::string("the fields of its kind"), value.dump()));
  }
}

}  // namespace

Event event_from_json(const json& value) { return made_from<Event>(value, kEvents); }
Action action_from_json(const json& value) { return made_from<Action>(value, kActions); }

}  // namespace collimate::graph
