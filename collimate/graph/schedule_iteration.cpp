#include "collimate/graph/schedule_iteration.h"

#include <algorithm>

namespace collimate::graph {
namespace {

// Returns the replicas that work, or all of them where none works.
std::vector<size_t> homes_of(const NodeFacts& facts, const Workers& workers) {
  std::vector<size_t> homes;
  for (size_t r = 0; r < facts.replicas.size(); ++r)
    if (workers.alive(facts.replicas[r])) homes.push_back(r);
  for (size_t r = 0; homes.empty() && r < facts.replicas.size(); ++r) homes.push_back(r);
  return homes;
}

}  // namespace

IterationRun::IterationRun(int64_t at, const GraphFacts& facts)
    : number(at), graph(facts.number), nodes(facts.nodes.size()) {
  for (size_t n = 0; n < nodes.size(); ++n) nodes[n].replicas.resize(facts.nodes[n].replicas.size());
}

void IterationRun::issue(const GraphFacts& facts, const Workers& workers, int64_t count) {
  const int64_t group = facts.group_size, first = issued / group, groups = count / group;
  const bool initial = issued == 0;
  issued += count;
  for (int n : facts.order) {
    if (facts.node(n).whole) continue;
    if (initial) {
      give_homes(facts, n, workers, groups);
      continue;
    }
    const std::vector<size_t> homes = homes_of(facts.node(n), workers);
    const int64_t over = static_cast<int64_t>(homes.size());
    for (int64_t g = first; g < first + groups; ++g)
      node(n).replicas[base::at(homes, g % over)].home.add({g * group, (g + 1) * group});
  }
}

void IterationRun::give_homes(const GraphFacts& facts, int index, const Workers& workers, int64_t groups) {
  const int64_t group = facts.group_size;
  const std::vector<size_t> homes = homes_of(facts.node(index), workers);
  const int64_t over = static_cast<int64_t>(homes.size());
  for (int64_t h = 0; h < over; ++h)
    node(index).replicas[base::at(homes, h)].home.add({groups * h / over * group, groups * (h + 1) / over * group});
}

// Part numbers continue after the earlier ones, so that no two calls of an iteration are the same.
void IterationRun::place_anew(const GraphFacts& facts, const Workers& workers) {
  for (int n : facts.order) {
    NodeRun& run = node(n);
    int part = -1;
    for (const ReplicaRun& replica : run.replicas) {
      part = std::max(part, replica.part);
      if (facts.node(n).whole && replica.running) run.called = false;
    }
    run.replicas.assign(facts.node(n).replicas.size(), ReplicaRun{.part = part});
    if (!facts.node(n).whole) give_homes(facts, n, workers, issued / facts.group_size);
  }
}

RowSet IterationRun::ready(const GraphFacts& facts, int index, int of, RowRange window) const {
  const NodeFacts& known = facts.node(index);
  const NodeRun& state = node(index);
  const ReplicaRun& here = base::at(state.replicas, of);
  const int64_t group = facts.group_size;
  if (known.group) window = {window.first / group * group, (window.end + group - 1) / group * group};
  RowSet rows = known.whole ? RowSet(window.first, window.end) : here.home.clip(window);
  for (int producer : known.producers) rows = rows.intersect(node(producer).done.clip(window));
  const RowSet gone = dropped.clip(window), done = state.done.clip(window), fed = here.fed.clip(window);
  for (const RowSet* left : {&gone, &done, &fed}) rows.subtract(*left);
  if (!known.group) return rows;
  RowSet decided = rows;
  for (const RowSet* left : {&gone, &done, &fed}) decided.merge(*left);
  return rows.intersect(decided.whole_groups(group));
}

RowSet IterationRun::open(int index, int of) const {
  RowSet rows = replica(index, of).home;
  rows.subtract(node(index).done);
  rows.subtract(dropped);
  return rows;
}

bool IterationRun::caught_up(const GraphFacts& facts, int index, int of) const {
  if (replica(index, of).running) return false;
  return facts.node(index).whole ? node(index).called : open(index, of).empty();
}

int64_t IterationRun::drop(RowRange range) {
  RowSet rows(range.first, range.end);
  rows.subtract(dropped);  // another filter may have dropped them before
  dropped.merge(rows);
  return rows.count();
}

bool IterationRun::decided(const GraphFacts& facts) const {
  RowSet left(0, issued);
  left.subtract(dropped);
  return std::all_of(facts.filters.begin(), facts.filters.end(),
                     [&](int filter) { return node(filter).done.contains(left); });
}

void IterationRun::move(int index, int from, int to, const RowSet& rows) {
  replica(index, from).home.subtract(rows);
  replica(index, to).home.merge(rows);
}

bool IterationRun::complete() const {
  return std::all_of(nodes.begin(), nodes.end(), [](const NodeRun& node) { return node.complete; });
}

}  // namespace collimate::graph
