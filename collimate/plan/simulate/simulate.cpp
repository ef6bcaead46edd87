#include "collimate/plan/simulate/simulate.h"

#include <algorithm>
#include <map>

namespace collimate::plan {
namespace {

using graph::Action;
using graph::ActionKind;
using graph::Event;
using graph::Task;

// Turns actions into the events that will answer them.
class Answers {
 public:
  Answers(const graph::Graph& graph, const graph::ScheduleOptions& options, const Predictions& predictions)
      : graph_(graph), options_(options), predictions_(predictions) {
    at(0, Event::begin());
    for (const auto& [seconds, event] : predictions.outside) at(seconds, event);
  }

  std::multimap<double, Event> queue;  // equal times: first in, first out

  void answer(double now, const Action& action) {
    switch (action.kind) {
      case ActionKind::kFeed:
        return feed(now, action);
      case ActionKind::kClose:
        return at(std::max(now, ready_[action.task]), Event::finished(action.task));
      case ActionKind::kTransition:
        return at(now + transition_seconds(action), transition(action));
      case ActionKind::kEvaluate:
        return at(now + predictions_.evaluation_seconds, Event::evaluated(action.iteration));
      case ActionKind::kArm:
        return at(now + action.seconds, Event::expired(action.timer));
      default:
        return;
    }
  }

  double transition_seconds(const Action& action) const {
    return predictions_.transition ? predictions_.transition(action) : predictions_.transition_seconds;
  }

 private:
  void at(double seconds, Event event) { queue.emplace(seconds, std::move(event)); }

  static Event transition(const Action& action) {
    if (action.transition == graph::TransitionKind::kWeights)
      return Event::weights_at(action.model, action.version, action.worker);
    return Event::resident_at(action.model, action.worker, action.transition == graph::TransitionKind::kLoad);
  }

  void feed(double now, const Action& action) {
    const graph::FunctionSpec& spec = graph_.spec(action.task.node);
    double& ready = ready_[action.task];
    for (int64_t first = action.first; first < action.first + action.count;) {
      const int64_t end =
          std::min(action.first + action.count, (first / options_.group_size + 1) * options_.group_size);
      const double begin = spec.streams ? now : std::max(now, ready);
      const double done = begin + predictions_.seconds(action.task, end - first);
      ready = std::max(ready, done);
      const bool drop = spec.drops_rows && predictions_.drops(action.task, first);
      at(done, drop ? Event::dropped(action.task, first, end - first) : Event::rows(action.task, first, end - first));
      first = end;
    }
  }

  const graph::Graph& graph_;
  const graph::ScheduleOptions& options_;
  const Predictions& predictions_;
  std::map<Task, double> ready_;  // when all that a task has been fed is done
};

// `open`: the spans of tasks that have not finished, by task; one that starts again has a new span.
void record_spans(Simulation& simulation, std::map<Task, size_t>& open, double now, const Event& event,
                  std::span<const Action> actions) {
  if (event.kind == graph::EventKind::kFinished)
    if (const auto span = open.extract(event.task)) simulation.spans[span.mapped()].end_seconds = now;
  for (const Action& action : actions) {
    if (action.kind != ActionKind::kStart) continue;
    open[action.task] = simulation.spans.size();
    simulation.spans.push_back({action.task, action.workers, now, 0});
  }
}

}  // namespace

Simulation simulate(const graph::Graph& graph, const graph::Placement& placement, const graph::ScheduleOptions& options,
                    const Predictions& predictions) {
  return simulate_from(graph::Schedule(graph, placement, options), graph, options, predictions);
}

Simulation simulate_from(graph::Schedule schedule, const graph::Graph& graph, const graph::ScheduleOptions& options,
                         const Predictions& predictions) {
  Answers answers(graph, options, predictions);
  Simulation simulation;
  std::map<Task, size_t> open;
  while (!answers.queue.empty() && !schedule.stopped()) {
    const auto [now, event] = *answers.queue.begin();
    answers.queue.erase(answers.queue.begin());
    const std::span<const Action> actions = schedule.on(event);
    for (const Action& action : actions) {
      answers.answer(now, action);
      if (action.kind == ActionKind::kTransition)
        simulation.moves.push_back({action, now, now + answers.transition_seconds(action)});
    }
    simulation.steps.push_back({event, {actions.begin(), actions.end()}});
    simulation.times.push_back(now);
    record_spans(simulation, open, now, event, actions);
    simulation.seconds = now;
  }
  simulation.stopped = schedule.stopped();
  if (!simulation.stopped) simulation.waiting = schedule.waiting();
  return simulation;
}

}  // namespace collimate::plan
