#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

void ScheduleCore::failed(const Event& event) {
  if (running(event.task) == nullptr) return;
  const std::string cause = facts_->describe(event.task) + ": " + event.cause;
  IterationRun& run = *run_of(event.task);
  NodeRun& state = run.node(event.task.node);
  give_back(event.task);
  const bool again = event.retryable && facts_->node(event.task).spec->retry_safe;
  if (!again || ++state.failures > options().retries) return stop(StopKind::kFailed, cause);
  move_rows(run, event.task.node, event.task.replica);
  update(run);
}

// Handles a task that is gone: its rows without outputs are to be done again.
void ScheduleCore::give_back(const Task& task) {
  ReplicaRun& replica = *running(task);
  replica.running = false;
  replica.fed = RowSet();
  if (facts_->node(task).whole) run_of(task)->node(task.node).called = false;
  workers_.end(workers_of_task(task));
  changed_ = true;
}

// Gives the rows that a replica has not done to the next replica that works; they stay when there is none. If that
// replica is idle, tasks that run on its workers end early, because they may wait for these rows.
void ScheduleCore::move_rows(IterationRun& run, int node, int from) {
  const NodeFacts& facts = facts_of(run).node(node);
  const int count = static_cast<int>(facts.replicas.size());
  const RowSet rows = run.open(node, from);
  for (int step = 1; step < count && !rows.empty(); ++step) {
    const int to = (from + step) % count;
    if (!workers_.alive(base::at(facts.replicas, to))) continue;
    run.move(node, from, to, rows);
    if (run.replica(node, to).running) return feed(run, node, to, {0, run.issued});
    for (int index : base::at(facts.replicas, to))
      if (const std::optional<Task> task = workers_[index].task) cut(*task);
    return;
  }
}

void ScheduleCore::move_lost_rows() {
  for (IterationRun* run : runs()) {
    const GraphFacts& facts = facts_of(*run);
    for (int n : facts.order)
      for (size_t r = 0; r < facts.node(n).replicas.size(); ++r)
        if (!facts.node(n).whole && !workers_.alive(facts.node(n).replicas[r])) move_rows(*run, n, static_cast<int>(r));
    update(*run);
  }
}

bool ScheduleCore::holds_state(int index, std::string& model) const {
  for (int n : base::at(facts_->nodes_on, index)) {
    model = facts_->graph.node(n).model;
    if (!facts_->node(n).spec->retry_safe) return true;
  }
  return false;
}

void ScheduleCore::lost(const Event& event) {
  if (!workers_.lose(event.worker, event.cause)) return;
  if (std::string model; holds_state(event.worker, model))
    return stop(StopKind::kFailed, fmt::format("worker {} with the state of {}: {}", event.worker, model, event.cause));
  lose_task(event.worker, event.cause);
  if (stopped_) return;
  for (const Transfer& transfer : transfers_.lost(event.worker, workers_)) ended(transfer);
  swaps_.lost(event.worker);
  move_lost_rows();
  Action& arm = emit(ActionKind::kArm);
  arm.timer = workers_.arm(event.worker);
  arm.seconds = options().lost_timeout_seconds;
}

void ScheduleCore::lose_task(int index, const std::string& cause) {
  const std::optional<Task> task = workers_[index].task;
  if (!task) return;
  if (!facts_->node(*task).spec->retry_safe)
    return stop(StopKind::kFailed,
                fmt::format("worker {} in {}, which may not run twice: {}", index, facts_->describe(*task), cause));
  if (workers_of_task(*task).size() > 1) emit(ActionKind::kCancel, *task);
  give_back(*task);
}

void ScheduleCore::back(int index) {
  workers_.back(index);
  transfers_.request_for(index);
  move_lost_rows();  // rows of workers that were lost while no other worked
  changed_ = true;
}

// Handles a timer that ran out. A run goes on without a worker as long as every node has a replica that works.
void ScheduleCore::expired(int timer) {
  const std::optional<int> index = workers_.expired(timer);
  if (!index) return;
  for (int number = 0; number <= std::ssize(facts_->evaluations); ++number) {
    const GraphFacts& facts = facts_->of(number);
    for (int n : base::at(facts.nodes_on, *index)) {
      const std::vector<Replica>& all = facts.node(n).replicas;
      if (std::any_of(all.begin(), all.end(), [&](const Replica& replica) { return workers_.alive(replica); }))
        continue;
      return stop(StopKind::kFailed,
                  base::expectation(fmt::format("worker {}", *index),
                                    fmt::format("to be back within {} s, for {}", options().lost_timeout_seconds,
                                                facts.graph.node(n).id),
                                    workers_[*index].cause));
    }
  }
  move_lost_rows();
  changed_ = true;
}

}  // namespace collimate::graph
