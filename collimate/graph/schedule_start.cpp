#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

// Begins everything that can begin now: transfers first, then tasks of an evaluation, or those of iterations in the
// order (iteration, node, replica).
void ScheduleCore::pump() {
  close_iterations();
  if (!stopped_) advance_save();
  if (stopped_) return;
  advance_evaluations();
  open_iterations();
  advance_transfers();
  while (!stopped_ && start_one()) {
  }
  if (!stopped_) stop_if_done();
}

bool ScheduleCore::start_one() {
  for (IterationRun* run : runs()) {
    const GraphFacts& facts = facts_of(*run);
    for (int n : facts.order)
      for (size_t r = 0; r < facts.node(n).replicas.size(); ++r) {
        const int replica = static_cast<int>(r);
        if (wait_of(*run, n, replica) != Wait::kNothing) continue;
        if (!resident(facts.node(n).models, facts.node(n).replicas[r])) continue;
        if (facts.node(n).whole) {
          start_whole(*run, n);
        } else {
          start(*run, n, replica);
        }
        return true;
      }
  }
  return false;
}

// Returns the first reason why the replica does not start, or kDone when there is nothing to start for.
Wait ScheduleCore::wait_of(const IterationRun& run, int node, int replica) const {
  const GraphFacts& graph = facts_of(run);
  const NodeFacts& facts = graph.node(node);
  const Replica& workers = base::at(facts.replicas, replica);
  const auto complete = [&](int n) { return run.node(n).complete; };
  if (run.replica(node, replica).running || run.caught_up(graph, node, replica)) return Wait::kDone;
  if (run.graph == 0 && barrier_.holds(run.number, front_)) return Wait::kBarrier;
  for (int index : workers)
    if (workers_[index].lost || workers_[index].task || workers_[index].transferring) return Wait::kWorker;
  if (!order_allows(run, node, workers)) return Wait::kOrder;
  if (facts.whole && !(run.settled && std::all_of(facts.producers.begin(), facts.producers.end(), complete)))
    return Wait::kInputs;
  if (!std::all_of(facts.after.begin(), facts.after.end(), complete)) return Wait::kAfter;
  if (facts.writes && run.number != front_) return Wait::kOrder;
  if (transfers_.blocks(facts, workers, workers_)) return Wait::kTransfer;
  if (options().exact_versions && run.graph == 0 && !transfers_.fresh(facts, workers, facts_->version_for(run.number)))
    return Wait::kTransfer;
  if (!facts.whole && run.ready(graph, node, replica, {0, run.issued}).empty()) return Wait::kRows;
  return Wait::kNothing;
}

// Says whether all that comes before on these workers is out of the way: earlier nodes of the iteration have done all
// rows asked for so far, and nodes of earlier iterations will get no more.
bool ScheduleCore::order_allows(const IterationRun& run, int node, const Replica& workers) const {
  const GraphFacts& facts = facts_of(run);
  for (const IterationRun* other : runs()) {
    if (other->graph != run.graph || other->number > run.number) continue;
    for (int index : workers)
      for (int n : base::at(facts.nodes_on, index)) {
        if (other->number == run.number && facts.node(n).position >= facts.node(node).position) break;
        if (other->node(n).complete) continue;
        if (other->number < run.number && !other->settled) return false;
        for (size_t r = 0; r < facts.node(n).replicas.size(); ++r) {
          const Replica& used = facts.node(n).replicas[r];
          if (std::find(used.begin(), used.end(), index) == used.end()) continue;
          if (!other->caught_up(facts, n, static_cast<int>(r))) return false;
        }
      }
  }
  return true;
}

void ScheduleCore::start(IterationRun& run, int node, int replica) {
  ReplicaRun& here = run.replica(node, replica);
  const NodeFacts& facts = facts_of(run).node(node);
  const int64_t trained = run.graph == 0 ? facts_->version_for(run.number) : run.number + 1;
  COLLIMATE_CHECK(transfers_.fresh(facts, base::at(facts.replicas, replica), trained), "stale weights in {}",
                  facts_->describe(run.task(node, replica, here.part + 1)));
  here.running = true;
  here.closed = false;
  ++here.part;
  const Task task = run.task(node, replica, here.part);
  emit(ActionKind::kStart, task).workers = workers_of_task(task);
  workers_.start(workers_of_task(task), task);
  feed(run, node, replica, {0, run.issued});
}

void ScheduleCore::start_whole(IterationRun& run, int node) {
  NodeRun& state = run.node(node);
  if (run.ready(facts_of(run), node, 0, {0, run.issued}).empty())
    return stop(StopKind::kFailed, base::expectation(fmt::format("iteration {}", step_of(run.number)),
                                                     "rows for " + facts_of(run).graph.node(node).id,
                                                     fmt::format("none: all {} were dropped", run.issued)));
  state.called = true;
  start(run, node, 0);
  ReplicaRun& here = state.replicas[0];
  if (!here.closed) close(run.task(node, 0, here.part), here);
}

std::string ScheduleCore::waiting() const {
  std::string lines;
  for (const IterationRun* run : runs()) lines += waiting(*run);
  for (const Transfer& transfer : transfers_.all()) {
    const char* how = transfer.running ? "are being transferred by workers"
                      : transfer.early ? "wait for iterations that draw by older ones, then for workers"
                                       : "wait for workers";
    lines += fmt::format("weights {} -> {} at {} {} {}\n", transfers_.link(transfer).source,
                         transfers_.link(transfer).destination, transfer.version, how,
                         fmt::join(transfers_.workers_of(transfer, workers_), ", "));
  }
  if (barrier_.save()) lines += fmt::format("the save of iteration {} waits\n", step_of(barrier_.save()->iteration));
  return lines;
}

std::string ScheduleCore::waiting(const IterationRun& run) const {
  std::string lines;
  for (int n : facts_of(run).order) {
    const std::vector<ReplicaRun>& replicas = run.node(n).replicas;
    for (int r = 0; r < static_cast<int>(replicas.size()); ++r) {
      const ReplicaRun& here = base::at(replicas, r);
      const std::string task = facts_->describe(run.task(n, r, std::max(here.part, 0)));
      const Wait wait = wait_of(run, n, r);
      if (here.running) {
        lines += fmt::format("{} runs{}: {} rows in, not out\n", task, here.closed ? ", closed" : "", here.fed.count());
      } else if (wait != Wait::kDone) {
        lines += fmt::format("{} waits {}\n", task, words_of(wait).name(wait));
      }
    }
  }
  return lines;
}

}  // namespace collimate::graph
