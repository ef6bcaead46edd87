#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

void ScheduleCore::begin() {
  if (begun_) restart();
  if (!begun_ && options().evaluate_first) evaluation_ = front_ - 1;
  begun_ = true;
  changed_ = true;
  transfers_.request_all();
}

// A new process goes on from a loaded state: nothing runs, workers are as at setup; what was open starts again as
// itself.
void ScheduleCore::restart() {
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
  evaluating_ = false;
  stopped_ = stop_asked_ = save_asked_ = false;  // of the process that saved this state
  for (IterationRun& run : active_) update(run);
}

void ScheduleCore::open_iterations() {
  while (next_ < options().iterations && next_ <= front_ + options().staleness && !stop_asked_) {
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
  const bool last = number + 1 == options().iterations;
  const auto due = [&](int64_t every) { return every > 0 && ((number + 1) % every == 0 || last); };
  if (due(options().save_every) || save_asked_ || stop_asked_) emit(ActionKind::kSave).iteration = number;
  if (due(options().evaluate_every) || evaluate_asked_) evaluation_ = number;
  save_asked_ = evaluate_asked_ = false;
  if (stop_asked_ && !last) stop(StopKind::kAsked, fmt::format("after iteration {}", step_of(number)));
}

// An evaluation has the workers for itself: running tasks end with what they have. A lost worker that may still come
// back would take part with the weights of the start: it is waited for.
void ScheduleCore::advance_evaluation() {
  if (!evaluation_ || evaluating_ || !transfers_.empty()) return;
  for (const WorkerState& state : workers_.all())
    if (state.task) cut(*state.task);
  if (!workers_.idle() || workers_.awaited()) return;
  evaluating_ = true;
  emit(ActionKind::kEvaluate).iteration = *evaluation_;
}

void ScheduleCore::asked(Ask ask) {
  if (ask == Ask::kStop && stop_asked_) return stop(StopKind::kAsked, "at once, the second time");
  stop_asked_ = stop_asked_ || ask == Ask::kStop;
  save_asked_ = save_asked_ || ask == Ask::kSave;
  evaluate_asked_ = evaluate_asked_ || ask == Ask::kEvaluate;
  changed_ = true;
}

void ScheduleCore::stop_if_done() {
  if (!active_.empty() || evaluation_) return;
  if (next_ >= options().iterations && transfers_.empty()) return stop(StopKind::kDone, "");
  if (!stop_asked_) return;
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
