#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

void ScheduleCore::begin() {
  if (begun_) restart();
  if (!begun_) barrier_.begin(facts_->times, front_);
  begun_ = true;
  changed_ = true;
  transfers_.request_all();
}

// Prepares for a new process that goes on from a loaded state: nothing runs, and workers are as at setup. What was open
// starts again with the same task, except iterations beyond the end of a run that is now shorter.
void ScheduleCore::restart() {
  while (!active_.empty() && active_.back().number >= options().iterations) active_.pop_back();
  next_ = front_ + std::ssize(active_);
  for (IterationRun& run : active_)
    for (int n : facts_->order) {
      for (int r = 0; r < static_cast<int>(run.node(n).replicas.size()); ++r) {
        ReplicaRun& replica = run.replica(n, r);
        if (!replica.running) continue;
        give_back(run.task(n, r, replica.part));
        --replica.part;
      }
    }
  evaluations_.clear();
  workers_.reset();
  transfers_.restart();
  swaps_ = Swaps();
  barrier_.restart(*facts_);
  if (barrier_.save()) barrier_.save()->models = facts_->saved_in_turn();
  stopped_ = false;  // only the process that saved this state had stopped
  for (IterationRun& run : active_) update(run);
}

void ScheduleCore::open_iterations() {
  while (next_ < options().iterations && next_ <= front_ + options().staleness && !barrier_.stop_asked()) {
    IterationRun& run = active_.emplace_back(next_++, *facts_);
    run.issue(*facts_, workers_, rows_of(run));
    update_settled(run);
  }
}

void ScheduleCore::close_iterations() {
  while (!stopped_ && !barrier_.save() && !active_.empty() && active_.front().complete()) {
    active_.pop_front();
    after_iteration(front_++);
  }
}

void ScheduleCore::after_iteration(int64_t number) {
  const Barrier::Due due = barrier_.after(*facts_, number);
  if (due.save) save_after(number, due.stop ? fmt::format("after iteration {}", step_of(number)) : "");
}

void ScheduleCore::asked(Ask ask) {
  if (ask == Ask::kStop && barrier_.stop_asked()) return stop(StopKind::kAsked, "at once, the second time");
  barrier_.ask(ask);
  changed_ = true;
}

void ScheduleCore::stop_if_done() {
  if (!active_.empty() || barrier_.open()) return;
  if (next_ >= options().iterations && transfers_.all_early()) return stop(StopKind::kDone, "");
  if (!barrier_.stop_asked()) return;
  const char* cause = "between iterations";
  front_ > options().first_iteration ? save_after(front_ - 1, cause) : stop(StopKind::kAsked, cause);
}

void ScheduleCore::stop(StopKind kind, const std::string& cause) {
  for (const IterationRun* run : runs())
    for (int n : facts_of(*run).order) {
      const std::vector<ReplicaRun>& replicas = run->node(n).replicas;
      for (int r = 0; r < static_cast<int>(replicas.size()); ++r)
        if (const ReplicaRun& replica = base::at(replicas, r); replica.running)
          emit(ActionKind::kCancel, run->task(n, r, replica.part));
    }
  Action& action = emit(ActionKind::kStop);
  action.stop = kind;
  action.cause = cause;
  stopped_ = true;
}

}  // namespace collimate::graph
