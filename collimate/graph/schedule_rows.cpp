#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

void ScheduleCore::rows_done(IterationRun& run, int node, const RowSet& rows) {
  const GraphFacts& facts = facts_of(run);
  run.node(node).done.merge(rows);
  for (int consumer : facts.node(node).consumers) {
    if (facts.node(consumer).whole) continue;
    const int replicas = static_cast<int>(facts.node(consumer).replicas.size());
    for (const RowRange& range : rows.ranges())
      for (int r = 0; r < replicas; ++r) feed(run, consumer, r, range);
  }
  if (facts.node(node).decides) update_settled(run);
}

void ScheduleCore::rows_dropped(IterationRun& run, const Task& task, RowRange range) {
  const GraphFacts& facts = facts_of(run);
  running(task)->fed.subtract(RowSet(range.first, range.end));
  const int64_t fresh = run.drop(range);
  if (facts.node(task.node).spec->drops_rows) {
    run.deficit += fresh;
    refill(run);
    if (stopped_) return;
  }
  for (int n : facts.order)
    for (size_t r = 0; r < facts.node(n).replicas.size(); ++r) feed(run, n, static_cast<int>(r), range);
  update(run);
}

// Replaces dropped groups by new rows. Running tasks that are not held open are closed, because the new rows may need
// their workers.
void ScheduleCore::refill(IterationRun& run) {
  const GraphFacts& graph = facts_of(run);
  const int64_t count = run.replaceable(graph.group_size), rows = rows_of(run);
  const int64_t most = options().replace_limit * rows;
  if (count == 0) return;
  if (run.issued + count > most)
    return stop(StopKind::kFailed,
                base::expectation(fmt::format("iteration {}", step_of(run.number)),
                                  fmt::format("{} rows left by the filters out of at most {}", rows, most),
                                  fmt::format("{} asked for and {} dropped", run.issued, run.dropped.count()),
                                  "prompts that are neither always right nor always wrong, or a larger replace_limit"));
  const int64_t first = run.issued;
  run.deficit -= count;
  run.issue(graph, workers_, count);
  for (int n : graph.order) {
    const NodeFacts& facts = graph.node(n);
    const NodeRun& state = run.node(n);
    for (int r = 0; r < static_cast<int>(state.replicas.size()); ++r) {
      const ReplicaRun& replica = base::at(state.replicas, r);
      if (!facts.whole && !facts.holds && replica.running) cut(run.task(n, r, replica.part));
      if (facts.producers.empty()) feed(run, n, r, {first, run.issued});
    }
  }
  changed_ = true;
}

// Feeds the running task the rows in the window that are ready. A task that has not started is fed when it does. The
// pieces of a group of which rows were dropped follow each other, and whoever carries the actions out makes one call of
// them.
void ScheduleCore::feed(IterationRun& run, int node, int replica, RowRange window) {
  ReplicaRun& here = run.replica(node, replica);
  if (!here.running) {
    changed_ = true;
    return;
  }
  if (here.closed) return;
  const Task task = run.task(node, replica, here.part);
  const RowSet rows = run.ready(facts_of(run), node, replica, window);
  for (const RowRange& range : rows.ranges()) {
    Action& action = emit(ActionKind::kFeed, task);
    action.first = range.first;
    action.count = range.end - range.first;
  }
  here.fed.merge(rows);
  close_if_fed(run, node, replica);
}

// Closes a task that has been fed all it will get: at once, or for a held task when the filters have decided.
void ScheduleCore::close_if_fed(IterationRun& run, int node, int replica) {
  const NodeFacts& facts = facts_of(run).node(node);
  ReplicaRun& here = run.replica(node, replica);
  if (!here.running || here.closed || (facts.holds && !run.settled)) return;
  RowSet open = run.open(node, replica);
  open.subtract(here.fed);
  if (open.empty()) close(run.task(node, replica, here.part), here);
}

void ScheduleCore::close(const Task& task, ReplicaRun& replica) {
  replica.closed = true;
  emit(ActionKind::kClose, task);
}

// Lets a task finish with what it has been fed; the remaining rows are for its next part.
void ScheduleCore::cut(const Task& task) {
  ReplicaRun* replica = running(task);
  if (replica != nullptr && !replica->closed) close(task, *replica);
}

void ScheduleCore::finished(const Task& task) {
  ReplicaRun* replica = running(task);
  if (replica == nullptr) return;
  COLLIMATE_CHECK(replica->closed, "{} finished before it was closed", facts_->describe(task));
  replica->running = false;
  const RowSet rest = std::exchange(replica->fed, RowSet());
  workers_.end(workers_of_task(task));
  IterationRun& run = *run_of(task);
  if (!rest.empty()) rows_done(run, task.node, rest);
  update(run);
}

// Marks what became complete. It is called when a task has ended or the fate of a set of rows is decided.
void ScheduleCore::update(IterationRun& run) {
  changed_ = true;
  update_settled(run);
  if (!run.settled) return;
  const GraphFacts& facts = facts_of(run);
  for (int n : facts.order) {
    NodeRun& state = run.node(n);
    if (state.complete) continue;
    if (options().may_be_empty && lacks_rows(run, n)) state.called = true;
    state.complete = true;
    for (int r = 0; state.complete && r < static_cast<int>(state.replicas.size()); ++r)
      state.complete = run.caught_up(facts, n, r);
    if (state.complete) node_complete(run, n);
  }
}

// Says whether a node of the run's own graph that is called once will not be called, as no rows are left for it.
bool ScheduleCore::lacks_rows(const IterationRun& run, int node) const {
  const GraphFacts& facts = facts_of(run);
  const NodeFacts& known = facts.node(node);
  if (run.graph != 0 || !known.whole || run.node(node).called) return false;
  for (int producer : known.producers)
    if (!run.node(producer).complete) return false;
  return run.ready(facts, node, 0, {0, run.issued}).empty();
}

void ScheduleCore::update_settled(IterationRun& run) {
  const GraphFacts& facts = facts_of(run);
  if (run.settled || !run.decided(facts)) return;
  run.settled = true;
  changed_ = true;
  for (int n : facts.order)
    for (size_t r = 0; r < facts.node(n).replicas.size(); ++r) close_if_fed(run, n, static_cast<int>(r));
  update(run);
}

void ScheduleCore::node_complete(IterationRun& run, int node) {
  if (!facts_of(run).node(node).writes) return;  // an evaluation never writes
  const std::string& model = facts_->graph.node(node).model;
  for (size_t n = 0; n < facts_->nodes.size(); ++n)
    if (facts_->nodes[n].writes && facts_->graph.nodes[n].model == model && !run.nodes[n].complete) return;
  transfers_.trained(model, run.number + 1);
}

}  // namespace collimate::graph
