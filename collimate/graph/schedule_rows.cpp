#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/graph/schedule_core.h"

namespace collimate::graph {

// Asks for `count` more rows: the first ones in blocks over the replicas, refilled groups in turn.
void ScheduleCore::issue(IterationRun& run, int64_t count) {
  const int64_t group = options().group_size, first = run.issued / group, groups = count / group;
  const bool initial = run.issued == 0;
  run.issued += count;
  for (int n : facts_->order) {
    const NodeFacts& facts = facts_->node(n);
    if (facts.whole) continue;
    std::vector<ReplicaRun>& replicas = base::at(run.nodes, n).replicas;
    std::vector<size_t> homes;
    for (size_t r = 0; r < replicas.size(); ++r)
      if (workers_.alive(facts.replicas[r])) homes.push_back(r);
    for (size_t r = 0; homes.empty() && r < replicas.size(); ++r) homes.push_back(r);
    const int64_t over = static_cast<int64_t>(homes.size());
    for (int64_t h = 0; initial && h < over; ++h)
      replicas[base::at(homes, h)].home.add({groups * h / over * group, groups * (h + 1) / over * group});
    for (int64_t g = first; !initial && g < first + groups; ++g)
      replicas[base::at(homes, g % over)].home.add({g * group, (g + 1) * group});
  }
}

// Rows in the window whose inputs are all there and which the replica has not been fed; whole groups where it wants
// them.
RowSet ScheduleCore::ready(const IterationRun& run, int node, int replica, RowRange window) const {
  const NodeFacts& facts = facts_->node(node);
  const NodeRun& state = base::at(run.nodes, node);
  const ReplicaRun& here = base::at(state.replicas, replica);
  const int64_t group = options().group_size;
  if (facts.group) window = {window.first / group * group, (window.end + group - 1) / group * group};
  RowSet rows = facts.whole ? RowSet(window.first, window.end) : here.home.clip(window);
  for (int producer : facts.producers) rows = rows.intersect(base::at(run.nodes, producer).done.clip(window));
  const RowSet dropped = run.dropped.clip(window), done = state.done.clip(window), fed = here.fed.clip(window);
  for (const RowSet* gone : {&dropped, &done, &fed}) rows.subtract(*gone);
  if (!facts.group) return rows;
  RowSet known = rows;
  for (const RowSet* gone : {&dropped, &done, &fed}) known.merge(*gone);
  return rows.intersect(known.whole_groups(group));
}

// Nothing runs there and every row asked for so far is done or dropped.
bool ScheduleCore::caught_up(const IterationRun& run, int node, const ReplicaRun& replica) const {
  const NodeRun& state = base::at(run.nodes, node);
  if (replica.running) return false;
  if (facts_->node(node).whole) return state.called;
  RowSet open = replica.home;
  open.subtract(state.done);
  open.subtract(run.dropped);
  return open.empty();
}

void ScheduleCore::rows_done(IterationRun& run, int node, const RowSet& rows) {
  base::at(run.nodes, node).done.merge(rows);
  for (int consumer : facts_->node(node).consumers) {
    if (facts_->node(consumer).whole) continue;
    const int replicas = static_cast<int>(facts_->node(consumer).replicas.size());
    for (const RowRange& range : rows.ranges())
      for (int r = 0; r < replicas; ++r) feed(run, consumer, r, range);
  }
  if (facts_->node(node).decides) update_settled(run);
}

void ScheduleCore::rows_dropped(IterationRun& run, const Task& task, RowRange range) {
  const NodeFacts& facts = facts_->node(task.node);
  RowSet rows(range.first, range.end);
  running(task)->fed.subtract(rows);
  rows.subtract(run.dropped);  // another filter may have dropped them before
  run.dropped.merge(rows);
  if (facts.spec->drops_rows) {
    run.deficit += rows.count();
    refill(run);
    if (stopped_) return;
  }
  for (int n : facts_->order)
    for (size_t r = 0; r < facts_->node(n).replicas.size(); ++r) feed(run, n, static_cast<int>(r), range);
  update(run);
}

// Replaces dropped groups by new rows. Nodes that share workers with those that have to do the new rows let go of them.
void ScheduleCore::refill(IterationRun& run) {
  const int64_t count = run.deficit / options().group_size * options().group_size;
  if (count == 0) return;
  if (run.issued + count > options().refill_limit * options().rows)
    return stop(StopKind::kFailed,
                base::expectation(fmt::format("iteration {}", step_of(run.number)),
                                  fmt::format("{} rows left by the filters out of at most {}", options().rows,
                                              options().refill_limit * options().rows),
                                  fmt::format("{} asked for and {} dropped", run.issued, run.dropped.count()),
                                  "prompts that are neither always right nor always wrong, or a larger refill_limit"));
  const int64_t first = run.issued;
  run.deficit -= count;
  issue(run, count);
  for (int n : facts_->order) {
    const NodeFacts& facts = facts_->node(n);
    const NodeRun& state = base::at(run.nodes, n);
    for (int r = 0; r < static_cast<int>(state.replicas.size()); ++r) {
      const ReplicaRun& replica = base::at(state.replicas, r);
      if (!facts.whole && !facts.holds && replica.running) cut({run.number, n, r, replica.part});
      if (facts.producers.empty()) feed(run, n, r, {first, run.issued});
    }
  }
  changed_ = true;
}

// Feeds the running task what is ready in the window; a task that has not started is fed when it does.
void ScheduleCore::feed(IterationRun& run, int node, int replica, RowRange window) {
  ReplicaRun& here = base::at(base::at(run.nodes, node).replicas, replica);
  if (!here.running) {
    changed_ = true;
    return;
  }
  if (here.closed) return;
  const Task task{run.number, node, replica, here.part};
  const RowSet rows = ready(run, node, replica, window);
  for (const RowRange& range : rows.ranges()) {
    Action& action = emit(ActionKind::kFeed, task);
    action.first = range.first;
    action.count = range.end - range.first;
  }
  here.fed.merge(rows);
  close_if_fed(run, node, replica);
}

// Closes a task that has been fed all it will get: at once, or when the filters have decided.
void ScheduleCore::close_if_fed(IterationRun& run, int node, int replica) {
  const NodeFacts& facts = facts_->node(node);
  NodeRun& state = base::at(run.nodes, node);
  ReplicaRun& here = base::at(state.replicas, replica);
  if (!here.running || here.closed || (facts.holds && !run.settled)) return;
  RowSet open = here.home;
  for (const RowSet* gone : {&here.fed, &state.done, &run.dropped}) open.subtract(*gone);
  if (open.empty()) close({run.number, node, replica, here.part}, here);
}

void ScheduleCore::close(const Task& task, ReplicaRun& replica) {
  replica.closed = true;
  emit(ActionKind::kClose, task);
}

// Lets a task finish with what it has been fed; the rest is for its next part.
void ScheduleCore::cut(const Task& task) {
  ReplicaRun* replica = running(task);
  if (replica != nullptr && !replica->closed) close(task, *replica);
}

void ScheduleCore::finished(const Task& task) {
  ReplicaRun* replica = running(task);
  if (replica == nullptr) return;
  COLLIMATE_CHECK(replica->closed, "{} finished before it was closed", describe(facts_->graph, task));
  replica->running = false;
  const RowSet rest = std::exchange(replica->fed, RowSet());
  workers_.end(workers_of_task(task));
  IterationRun& run = *iteration(task.iteration);
  if (!rest.empty()) rows_done(run, task.node, rest);
  update(run);
}

// Whether anything became complete: to be called when a task has ended or a set of rows is decided.
void ScheduleCore::update(IterationRun& run) {
  changed_ = true;
  update_settled(run);
  if (!run.settled) return;
  for (int n : facts_->order) {
    NodeRun& state = base::at(run.nodes, n);
    if (state.complete) continue;
    state.complete = std::all_of(state.replicas.begin(), state.replicas.end(),
                                 [&](const ReplicaRun& replica) { return caught_up(run, n, replica); });
    if (state.complete) node_complete(run, n);
  }
}

void ScheduleCore::update_settled(IterationRun& run) {
  if (run.settled) return;
  RowSet open(0, run.issued);
  open.subtract(run.dropped);
  for (int filter : facts_->filters)
    if (!base::at(run.nodes, filter).done.contains(open)) return;
  run.settled = true;
  changed_ = true;
  for (int n : facts_->order)
    for (size_t r = 0; r < facts_->node(n).replicas.size(); ++r) close_if_fed(run, n, static_cast<int>(r));
  update(run);
}

void ScheduleCore::node_complete(IterationRun& run, int node) {
  const std::string& model = facts_->graph.node(node).model;
  if (!facts_->node(node).writes) return;
  for (size_t n = 0; n < facts_->nodes.size(); ++n)
    if (facts_->nodes[n].writes && facts_->graph.nodes[n].model == model && !run.nodes[n].complete) return;
  trained_[model] = run.number + 1;
  request_transfers(model);
}

}  // namespace collimate::graph
