#include "collimate/graph/schedule_core.h"

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::graph {

ScheduleCore::ScheduleCore(std::shared_ptr<const ScheduleFacts> facts)
    : facts_(std::move(facts)), workers_(facts_->nodes_on.size()), transfers_(facts_) {
  front_ = next_ = options().first_iteration;
}

std::span<const Action> ScheduleCore::on(const Event& event) {
  actions_.clear();
  if (stopped_ && event.kind != EventKind::kBegin) return {};
  COLLIMATE_CHECK(begun_ || event.kind == EventKind::kBegin, "the first event is Begin");
  changed_ = false;
  handle(event);
  if (!stopped_ && changed_) pump();
  return actions_;
}

void ScheduleCore::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::kBegin:
      return begin();
    case EventKind::kRows:
    case EventKind::kDropped:
      return given(event);
    case EventKind::kFinished:
      return finished(event.task);
    case EventKind::kFailed:
      return failed(event);
    case EventKind::kResident:
      swaps_.moved(event.model, event.worker, event.resident);
      changed_ = true;
      return;
    case EventKind::kWeightsAt:
      return weights_at(event);
    case EventKind::kLost:
      return lost(event);
    case EventKind::kBack:
      return back(event.worker);
    case EventKind::kExpired:
      return expired(event.timer);
    case EventKind::kAsked:
      return asked(event.ask);
  }
}

// Handles rows that came out of a task or were dropped by it.
void ScheduleCore::given(const Event& event) {
  ReplicaRun* run = running(event.task);
  if (run == nullptr) return;
  const RowRange range{event.first, event.first + event.count};
  COLLIMATE_CHECK(run->fed.contains(range), "rows {}+{} of {} were not fed", event.first, event.count,
                  facts_->describe(event.task));
  IterationRun& now = *run_of(event.task);
  if (event.kind == EventKind::kDropped) return rows_dropped(now, event.task, range);
  if (facts_->node(event.task).whole) return;  // the call counts as a whole, when it has finished
  run->fed.subtract(RowSet(range.first, range.end));
  rows_done(now, event.task.node, RowSet(range.first, range.end));
}

std::vector<IterationRun*> ScheduleCore::runs() {
  std::vector<IterationRun*> all;
  for (IterationRun& run : evaluations_) all.push_back(&run);
  for (IterationRun& run : active_) all.push_back(&run);
  return all;
}

std::vector<const IterationRun*> ScheduleCore::runs() const {
  std::vector<const IterationRun*> all;
  for (const IterationRun& run : evaluations_) all.push_back(&run);
  for (const IterationRun& run : active_) all.push_back(&run);
  return all;
}

IterationRun* ScheduleCore::run_of(const Task& task) {
  for (IterationRun* run : runs())
    if (run->graph == task.graph && run->number == task.iteration) return run;
  return nullptr;
}

ReplicaRun* ScheduleCore::running(const Task& task) {
  IterationRun* run = run_of(task);
  if (run == nullptr || task.node < 0 || task.node >= static_cast<int>(run->nodes.size())) return nullptr;
  std::vector<ReplicaRun>& replicas = run->node(task.node).replicas;
  if (task.replica < 0 || task.replica >= static_cast<int>(replicas.size())) return nullptr;
  ReplicaRun& replica = base::at(replicas, task.replica);
  return replica.running && replica.part == task.part ? &replica : nullptr;
}

const Replica& ScheduleCore::workers_of_task(const Task& task) const {
  return base::at(facts_->node(task).replicas, task.replica);
}

Action& ScheduleCore::emit(ActionKind kind) {
  actions_.emplace_back().kind = kind;
  return actions_.back();
}

Action& ScheduleCore::emit(ActionKind kind, const Task& task) {
  Action& action = emit(kind);
  action.task = task;
  return action;
}

}  // namespace collimate::graph
