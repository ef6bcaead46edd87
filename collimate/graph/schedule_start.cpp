#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

// Everything that can begin now: transfers first, then tasks in the order (iteration, node, replica).
void ScheduleCore::pump() {
  close_iterations();
  if (stopped_) return;
  advance_evaluation();
  open_iterations();
  advance_transfers();
  while (!stopped_ && start_one()) {
  }
  if (!stopped_) stop_if_done();
}

bool ScheduleCore::start_one() {
  for (IterationRun& run : active_)
    for (int n : facts_->order)
      for (size_t r = 0; r < facts_->node(n).replicas.size(); ++r) {
        const int replica = static_cast<int>(r);
        if (wait_of(run, n, replica) != Wait::kNothing) continue;
        if (!resident(n, facts_->node(n).replicas[r])) continue;
        if (facts_->node(n).whole) {
          start_whole(run, n);
        } else {
          start(run, n, replica);
        }
        return true;
      }
  return false;
}

// The first reason why the replica does not start; kDone when there is nothing to start for.
Wait ScheduleCore::wait_of(const IterationRun& run, int node, int replica) const {
  const NodeFacts& facts = facts_->node(node);
  const Replica& workers = base::at(facts.replicas, replica);
  const auto complete = [&](int n) { return run.node(n).complete; };
  if (run.replica(node, replica).running || run.caught_up(*facts_, node, replica)) return Wait::kDone;
  if (barrier_.holds(run.number, front_)) return Wait::kBarrier;
  for (int index : workers)
    if (workers_[index].lost || workers_[index].task || workers_[index].transferring) return Wait::kWorker;
  if (!order_allows(run, node, workers)) return Wait::kOrder;
  if (facts.whole && !(run.settled && std::all_of(facts.producers.begin(), facts.producers.end(), complete)))
    return Wait::kInputs;
  if (!std::all_of(facts.after.begin(), facts.after.end(), complete)) return Wait::kAfter;
  if (facts.writes && run.number != front_) return Wait::kOrder;
  if (transfers_.blocks(node, workers, workers_)) return Wait::kTransfer;
  if (!facts.whole && run.ready(*facts_, node, replica, {0, run.issued}).empty()) return Wait::kRows;
  return Wait::kNothing;
}

// Whether all that comes before on these workers is out of the way: earlier nodes of the iteration have done all rows
// asked for so far, those of earlier iterations will get no more.
bool ScheduleCore::order_allows(const IterationRun& run, int node, const Replica& workers) const {
  for (const IterationRun& other : active_) {
    if (other.number > run.number) break;
    for (int index : workers)
      for (int n : base::at(facts_->nodes_on, index)) {
        if (other.number == run.number && facts_->node(n).position >= facts_->node(node).position) break;
        if (other.node(n).complete) continue;
        if (other.number < run.number && !other.settled) return false;
        for (size_t r = 0; r < facts_->node(n).replicas.size(); ++r) {
          const Replica& used = facts_->node(n).replicas[r];
          if (std::find(used.begin(), used.end(), index) == used.end()) continue;
          if (!other.caught_up(*facts_, n, static_cast<int>(r))) return false;
        }
      }
  }
  return true;
}

// Whether all swapped models that the node uses are on its workers and no others are. If not, asks for what is missing.
bool ScheduleCore::resident(int node, const Replica& workers) {
  bool all = true;
  std::vector<Swaps::Move> moves;
  for (int index : workers)
    all = swaps_.prepare(index, base::at(facts_->swapped_on, index), facts_->node(node).models, moves) && all;
  for (Swaps::Move& move : moves) {
    Action& action = emit(ActionKind::kTransition);
    action.transition = move.load ? TransitionKind::kLoad : TransitionKind::kOffload;
    action.model = std::move(move.model);
    action.worker = move.worker;
  }
  return all;
}

void ScheduleCore::start(IterationRun& run, int node, int replica) {
  ReplicaRun& here = run.replica(node, replica);
  COLLIMATE_CHECK(transfers_.fresh(node, base::at(facts_->node(node).replicas, replica), run.number),
                  "stale weights in {}", describe(facts_->graph, Task{run.number, node, replica, here.part + 1}));
  here.running = true;
  here.closed = false;
  ++here.part;
  const Task task{run.number, node, replica, here.part};
  emit(ActionKind::kStart, task).workers = workers_of_task(task);
  workers_.start(workers_of_task(task), task);
  feed(run, node, replica, {0, run.issued});
}

void ScheduleCore::start_whole(IterationRun& run, int node) {
  NodeRun& state = run.node(node);
  if (run.ready(*facts_, node, 0, {0, run.issued}).empty())
    return stop(StopKind::kFailed, base::expectation(fmt::format("iteration {}", step_of(run.number)),
                                                     "rows for " + facts_->graph.node(node).id,
                                                     fmt::format("none: all {} were dropped", run.issued)));
  state.called = true;
  start(run, node, 0);
  ReplicaRun& here = state.replicas[0];
  if (!here.closed) close({run.number, node, 0, here.part}, here);
}

std::string ScheduleCore::waiting() const {
  std::string lines;
  for (const IterationRun& run : active_)
    for (int n : facts_->order) {
      const std::vector<ReplicaRun>& replicas = run.node(n).replicas;
      for (int r = 0; r < static_cast<int>(replicas.size()); ++r) {
        const ReplicaRun& here = base::at(replicas, r);
        const std::string task = describe(facts_->graph, Task{run.number, n, r, std::max(here.part, 0)});
        const Wait wait = wait_of(run, n, r);
        if (here.running) {
          lines +=
              fmt::format("{} runs{}: {} rows in, not out\n", task, here.closed ? ", closed" : "", here.fed.count());
        } else if (wait != Wait::kDone) {
          lines += fmt::format("{} waits {}\n", task, words_of(wait).name(wait));
        }
      }
    }
  for (const Transfer& transfer : transfers_.all())
    lines += fmt::format("weights {} -> {} at {} {}\n", transfers_.link(transfer).source,
                         transfers_.link(transfer).destination, transfer.version,
                         transfer.running ? "are being transferred" : "wait for the workers");
  return lines;
}

}  // namespace collimate::graph
