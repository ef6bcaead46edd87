#pragma once

#include <cstdint>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/fields.h"
#include "collimate/graph/rows.h"
#include "collimate/graph/schedule_facts.h"
#include "collimate/graph/schedule_workers.h"

// This file tracks the rows of an iteration in progress. Internal to schedule*.cpp.
namespace collimate::graph {

// A ReplicaRun is a node on one replica in one iteration. The rows of a whole node's one call have no home.
struct ReplicaRun {
  RowSet home;  // issued rows that are to be done here
  RowSet fed;   // rows given to the running task that are not yet out
  int part = -1;
  bool running = false;
  bool closed = false;

  COLLIMATE_FIELDS(home, fed, part, running, closed)
};

struct NodeRun {
  RowSet done;  // rows with outputs
  std::vector<ReplicaRun> replicas;
  int failures = 0;
  bool called = false;    // a whole node's call is running or done
  bool complete = false;  // nothing more will come from it

  COLLIMATE_FIELDS(done, failures, called, complete, replicas)
};

// An IterationRun says which rows were asked for, where each is to be done, and how far each node is with them. Every
// issued row has one home in each node that is not whole; rows are done or fed only where they were issued.
struct IterationRun {
  int64_t number = 0;
  int graph = 0;        // as Task::graph; an evaluation takes place after iteration `number`
  int64_t issued = 0;   // rows [0, issued) were asked for
  int64_t deficit = 0;  // rows dropped by filters and not yet replaced
  RowSet dropped;
  bool settled = false;  // no filter can ask for more rows
  std::vector<NodeRun> nodes;

  IterationRun() = default;
  IterationRun(int64_t number, const GraphFacts& facts);

  NodeRun& node(int index) { return base::at(nodes, index); }
  const NodeRun& node(int index) const { return base::at(nodes, index); }
  ReplicaRun& replica(int index, int of) { return base::at(node(index).replicas, of); }
  const ReplicaRun& replica(int index, int of) const { return base::at(node(index).replicas, of); }

  // Asks for `count` more rows, in whole groups. The first call gives homes in blocks over the working replicas, later
  // calls in turn.
  void issue(const GraphFacts& facts, const Workers& workers, int64_t count);
  // Takes over an iteration from another placement: nothing runs, and the rows get homes as in the first call of issue.
  void place_anew(const GraphFacts& facts, const Workers& workers);
  // Returns the rows in the window whose inputs are all there and which the replica has not been fed, in whole groups
  // where the node is group-granular.
  RowSet ready(const GraphFacts& facts, int index, int of, RowRange window) const;
  // Returns the rows with their home there that are neither done nor dropped.
  RowSet open(int index, int of) const;
  // Says whether nothing runs there and every row asked for so far is done or dropped.
  bool caught_up(const GraphFacts& facts, int index, int of) const;
  // Drops rows and returns how many of them were not dropped before.
  int64_t drop(RowRange range);
  // Returns how many rows may now be asked for in place of dropped ones, in whole groups.
  int64_t replaceable(int64_t group_size) const { return deficit / group_size * group_size; }
  // Says whether every filter has let pass or dropped every row asked for.
  bool decided(const GraphFacts& facts) const;
  // Moves rows from one replica to another.
  void move(int index, int from, int to, const RowSet& rows);
  bool complete() const;
  Task task(int index, int of, int part) const { return {number, index, of, part, graph}; }

  COLLIMATE_FIELDS(number, graph, issued, deficit, dropped, settled, nodes)

 private:
  // Gives groups [0, groups) of a node homes, in blocks over its working replicas.
  void give_homes(const GraphFacts& facts, int index, const Workers& workers, int64_t groups);
};

}  // namespace collimate::graph
