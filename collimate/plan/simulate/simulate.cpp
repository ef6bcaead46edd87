#include "collimate/plan/simulate/simulate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "collimate/base/at.h"

namespace collimate::plan {
namespace {

using graph::Action;
using graph::ActionKind;
using graph::Event;
using graph::Task;

// A NextStep is what will happen: an event or, without one, the moment in which a task may begin its next call.
struct NextStep {
  std::optional<Event> event;
  Task task;
};

// TaskWork is the state of a task in virtual time.
struct TaskWork {
  double ready = 0;  // when all that it has begun is done
  std::vector<Action> waiting;
  bool closed = false;
  std::vector<std::pair<double, double>> calls;
};

// Turns actions into the events that will answer them.
class Answers {
 public:
  Answers(const graph::NamedGraphs& graphs, const graph::ScheduleOptions& options, const Predictions& predictions)
      : graphs_(graphs), options_(options), predictions_(predictions) {
    at(0, Event::begin());
    for (const auto& [seconds, event] : predictions.outside) at(seconds, event);
  }

  std::multimap<double, NextStep> queue;  // equal times: first in, first out

  void answer(double now, const Action& action) {
    switch (action.kind) {
      case ActionKind::kFeed:
        return spec(action.task).streams ? stream(now, action) : wait(now, action);
      case ActionKind::kClose:
        work_[action.task].closed = true;
        return may_call(std::max(now, work_[action.task].ready), action.task);
      case ActionKind::kTransition:
        return at(now + transition_seconds(action), transition(action));
      case ActionKind::kArm:
        return at(now + action.seconds, Event::expired(action.timer));
      default:
        return;
    }
  }

  double transition_seconds(const Action& action) const {
    return predictions_.transition ? predictions_.transition(action) : predictions_.transition_seconds;
  }

  // Begins the next call of an idle task on all rows that wait, or ends the task where none wait and none will come.
  void call(double now, const Task& task) {
    TaskWork& work = work_[task];
    if (now < work.ready) return;
    if (work.waiting.empty()) {
      if (std::exchange(work.closed, false)) at(now, Event::finished(task));
      return;
    }
    int64_t rows = 0;
    for (const Action& fed : work.waiting) rows += fed.count;
    work.ready = now + predictions_.seconds(task, rows);
    work.calls.emplace_back(now, work.ready);
    for (const Action& fed : std::exchange(work.waiting, {})) give_out(work.ready, fed);
    may_call(work.ready, task);
  }

  const std::vector<std::pair<double, double>>& calls(const Task& task) { return work_[task].calls; }

 private:
  const graph::FunctionSpec& spec(const Task& task) const { return graphs_.of(task.graph).spec(task.node); }
  int64_t group_size(const Task& task) const {
    return task.graph == 0 ? options_.group_size : base::at(graphs_.evaluations, task.graph - 1).group_size;
  }
  void at(double seconds, Event event) { queue.emplace(seconds, NextStep{std::move(event), {}}); }
  void may_call(double seconds, const Task& task) { queue.emplace(seconds, NextStep{std::nullopt, task}); }

  static Event transition(const Action& action) {
    if (action.transition == graph::TransitionKind::kWeights)
      return Event::weights_at(action.model, action.version, action.worker);
    return Event::resident_at(action.model, action.worker, action.transition == graph::TransitionKind::kLoad);
  }

  // Rows that come in one moment go into one call, which begins when all events of the moment have been answered.
  void wait(double now, const Action& fed) {
    TaskWork& work = work_[fed.task];
    work.waiting.push_back(fed);
    if (now >= work.ready) may_call(now, fed.task);
  }

  void give_out(double seconds, const Action& fed) {
    if (!spec(fed.task).drops_rows) return at(seconds, Event::rows(fed.task, fed.first, fed.count));
    for_groups(fed, [&](int64_t first, int64_t count) {
      at(seconds, predictions_.drops(fed.task, first) ? Event::dropped(fed.task, first, count)
                                                      : Event::rows(fed.task, first, count));
    });
  }

  void stream(double now, const Action& fed) {
    double& ready = work_[fed.task].ready;
    const bool drops = spec(fed.task).drops_rows;
    if (predictions_.finish && !drops) {
      const double seconds = predictions_.seconds(fed.task, fed.count);
      ready = std::max(ready, now + seconds);
      for (int64_t first = fed.first, row = first + 1; row <= fed.first + fed.count; ++row) {
        const double share = predictions_.finish(fed.task, first);
        if (row < fed.first + fed.count && predictions_.finish(fed.task, row) == share) continue;
        at(now + share * seconds, Event::rows(fed.task, first, row - first));
        first = row;
      }
      return;
    }
    for_groups(fed, [&](int64_t first, int64_t count) {
      const double done = now + predictions_.seconds(fed.task, count);
      ready = std::max(ready, done);
      at(done, drops && predictions_.drops(fed.task, first) ? Event::dropped(fed.task, first, count)
                                                            : Event::rows(fed.task, first, count));
    });
  }

  template <class F>
  void for_groups(const Action& fed, const F& visit) const {
    const int64_t group = group_size(fed.task);
    for (int64_t first = fed.first; first < fed.first + fed.count;) {
      const int64_t end = std::min(fed.first + fed.count, (first / group + 1) * group);
      visit(first, end - first);
      first = end;
    }
  }

  const graph::NamedGraphs& graphs_;
  const graph::ScheduleOptions& options_;
  const Predictions& predictions_;
  std::map<Task, TaskWork> work_;
};

// Records the begin and end of tasks. `open` has the index of the span of each task that has not finished; a task that
// starts again gets a new span.
void record_spans(Simulation& simulation, std::map<Task, size_t>& open, double now, const Event& event,
                  std::span<const Action> actions, Answers& answers) {
  if (event.kind == graph::EventKind::kFinished)
    if (const auto span = open.extract(event.task)) {
      simulation.spans[span.mapped()].end_seconds = now;
      simulation.spans[span.mapped()].calls = answers.calls(event.task);
    }
  for (const Action& action : actions) {
    if (action.kind != ActionKind::kStart) continue;
    open[action.task] = simulation.spans.size();
    simulation.spans.push_back({action.task, action.workers, now, 0, {}});
  }
}

}  // namespace

Simulation simulate(const graph::NamedGraphs& graphs, const graph::Placement& placement,
                    const graph::ScheduleOptions& options, const Predictions& predictions) {
  return simulate_from(graph::Schedule(graphs.run, placement, options, graphs.evaluations), graphs, options,
                       predictions);
}

Simulation simulate_from(graph::Schedule schedule, const graph::NamedGraphs& graphs,
                         const graph::ScheduleOptions& options, const Predictions& predictions) {
  Answers answers(graphs, options, predictions);
  Simulation simulation;
  std::map<Task, size_t> open;
  while (!answers.queue.empty() && !schedule.stopped()) {
    const auto [now, next] = *answers.queue.begin();
    answers.queue.erase(answers.queue.begin());
    if (!next.event) {
      answers.call(now, next.task);
      continue;
    }
    const Event& event = *next.event;
    const std::span<const Action> actions = schedule.on(event);
    for (const Action& action : actions) {
      answers.answer(now, action);
      if (action.kind == ActionKind::kTransition)
        simulation.moves.push_back({action, now, now + answers.transition_seconds(action)});
    }
    simulation.steps.push_back({event, {actions.begin(), actions.end()}});
    simulation.times.push_back(now);
    record_spans(simulation, open, now, event, actions, answers);
    simulation.seconds = now;
  }
  simulation.stopped = schedule.stopped();
  if (!simulation.stopped) simulation.waiting = schedule.waiting();
  return simulation;
}

}  // namespace collimate::plan
