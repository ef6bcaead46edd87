#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

void ScheduleCore::begin() {
  if (begun_) restart();
  if (!begun_) barrier_.begin(options(), front_);
  begun_ = true;
  changed_ = true;
  transfers_.request_all();
}

// A new process goes on from a loaded state: nothing runs, workers are as at setup; what was open starts again as
// itself, but for iterations behind the end of a run that is now shorter.
void ScheduleCore::restart() {
  while (!active_.empty() && active_.back().number >= options().iterations) active_.pop_back();
  next_ = front_ + std::ssize(active_);
  for (IterationRun& run : active_)
    for (int n : facts_->order) {
      for (int r = 0; r < static_cast<int>(run.node(n).replicas.size()); ++r) {
        ReplicaRun& replica = run.replica(n, r);
        if (!replica.running) continue;
        give_back({run.number, n, r, replica.part});
        --replica.part;
      }
    }
  workers_.reset();
  transfers_.reset();
  swaps_ = Swaps();
  barrier_.restart();
  stopped_ = false;  // it was of the process that saved this state
  for (IterationRun& run : active_) update(run);
}

void ScheduleCore::open_iterations() {
  while (next_ < options().iterations && next_ <= front_ + options().staleness && !barrier_.stop_asked()) {
    IterationRun& run = active_.emplace_back(next_++, *facts_);
    run.issue(*facts_, workers_, options().rows);
    update_settled(run);
  }
}

void ScheduleCore::close_iterations() {
  while (!stopped_ && !active_.empty() && active_.front().complete()) {
    active_.pop_front();
    after_iteration(front_++);
  }
}

void ScheduleCore::after_iteration(int64_t number) {
  const Barrier::Due due = barrier_.after(options(), number);
  if (due.save) emit(ActionKind::kSave).iteration = number;
  if (due.stop) stop(StopKind::kAsked, fmt::format("after iteration {}", step_of(number)));
}

// An evaluation has the workers for itself: running tasks end with what they have. A lost worker that may still come
// back would take part with the weights of the start: it is waited for.
void ScheduleCore::advance_evaluation() {
  if (!barrier_.wanted() || !transfers_.empty()) return;
  for (const WorkerState& state : workers_.all())
    if (state.task) cut(*state.task);
  if (!workers_.idle() || workers_.awaited()) return;
  emit(ActionKind::kEvaluate).iteration = *barrier_.wanted();
  barrier_.evaluate();
}

void ScheduleCore::asked(Ask ask) {
  if (ask == Ask::kStop && barrier_.stop_asked()) return stop(StopKind::kAsked, "at once, the second time");
  barrier_.ask(ask);
  changed_ = true;
}

void ScheduleCore::stop_if_done() {
  if (!active_.empty() || barrier_.evaluation()) return;
  if (next_ >= options().iterations && transfers_.empty()) return stop(StopKind::kDone, "");
  if (!barrier_.stop_asked()) return;
  if (front_ > options().first_iteration) emit(ActionKind::kSave).iteration = front_ - 1;
  stop(StopKind::kAsked, "between iterations");
}

void ScheduleCore::stop(StopKind kind, const std::string& cause) {
  for (const IterationRun& run : active_)
    for (int n : facts_->order) {
      const std::vector<ReplicaRun>& replicas = run.node(n).replicas;
      for (int r = 0; r < static_cast<int>(replicas.size()); ++r)
        if (const ReplicaRun& replica = base::at(replicas, r); replica.running)
          emit(ActionKind::kCancel, Task{run.number, n, r, replica.part});
    }
  Action& action = emit(ActionKind::kStop);
  action.stop = kind;
  action.cause = cause;
  stopped_ = true;
}

}  // namespace collimate::graph
