#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/base/stateful.h"
#include "collimate/graph/device_memory.h"
#include "collimate/graph/evaluation_graph.h"
#include "collimate/graph/event.h"
#include "collimate/graph/graph.h"
#include "collimate/graph/placement.h"

namespace collimate::graph {

struct ScheduleOptions {
  int64_t first_iteration = 0;  // > 0 when a run goes on from a checkpoint
  int64_t iterations = 1;       // the run ends before this iteration number
  int64_t rows = 1;             // samples per iteration; a multiple of group_size
  int64_t group_size = 1;       // samples per prompt
  int64_t staleness = -1;       // -1: the placement's
  int64_t save_every = 0;       // iterations; 0 never. The last iteration is saved too when > 0
  int64_t evaluate_every = 0;
  bool evaluate_first = false;
  // With staleness, an iteration has exactly the version of weights that it waits for, and a checkpoint what links
  // wrote: results do not depend on the clock.
  bool exact_versions = false;
  bool update_in_flight = false;  // weights reach a running service between two of its steps, else when it is idle
  int64_t replace_limit = 10;     // rows asked for in an iteration, as a multiple of `rows`
  int retries = 2;                // of a node in an iteration, after failures that are retryable
  double lost_timeout_seconds = 600;
  bool operator==(const ScheduleOptions&) const = default;

  COLLIMATE_FIELDS(first_iteration, iterations, rows, group_size, staleness, save_every, evaluate_every, evaluate_first,
                   exact_versions, update_in_flight, replace_limit, retries, lost_timeout_seconds)
};

class ScheduleCore;

// Decides what runs where and when: a deterministic function from the events so far to actions, without clock, thread
// or I/O. The executor starts nothing but in answer to an action, and reports everything that happens as an event.
//  - A worker runs one task at a time; tasks start on it in the order (iteration, node), so that no wait is circular.
//  - A row- or group-granular node is started when its worker is free and rows for it are ready, and fed while its
//    producers go on; an iteration-granular one when its inputs are complete. Group g of G has home replica g·R/G.
//  - Iteration i starts when all before i − staleness are complete. A node whose model is the destination of a link
//    waits for version ⌊(i − staleness) / every⌋·every; a model's version is the number of iterations that trained it.
//  - With exact_versions it waits for that version, or for the weights of the last evaluation before it where those are
//    newer, and a transfer for every iteration that draws by older ones. A worker that was lost gets the newest: those
//    of its time are gone. A save waits for what runs.
//  - Rows dropped by a function with `drops_rows` are replaced by new rows; dropped elsewhere, they are missing.
//  - Weights are transferred along every link at the beginning and for a worker that is back.
//  - Evaluations take place one after the other, after the weights of their iteration have arrived everywhere. Running
//    tasks end with what they have, and none of the run's own starts before all evaluations are done.
//  - A model with residency swap is absent at first, and on its workers while a task, a transfer or a save uses it. It
//    stays while the memory's budget has room for it beside what is used.
// Copyable. Not thread-safe. Events about tasks that are gone are ignored. The constructor throws InputError as
// validate does, and for options or filters that cannot work.
class Schedule final : public base::Stateful {
 public:
  explicit Schedule(const Graph& graph, const Placement& placement, const ScheduleOptions& options,
                    std::span<const EvaluationGraph> evaluations = {}, const DeviceMemory& memory = {});
  Schedule(const Schedule& other);
  Schedule& operator=(const Schedule& other);
  Schedule(Schedule&&) noexcept;
  Schedule& operator=(Schedule&&) noexcept;
  ~Schedule() override;

  // The actions that follow, in the order in which they are to be issued. Valid until the next call.
  std::span<const Action> on(const Event& event);

  // When it has stopped: the loads and off-loads, in order, after which of all swapped models the named one alone is on
  // its workers; "": none is. They count as done. `at_setup`: no event has come to this process, models are as at
  // setup.
  std::vector<Action> bring(const std::string& model, bool at_setup);

  bool stopped() const;
  // Iterations complete so far, counted from first_iteration.
  int64_t completed() const;
  // Who waits for what, one line per unfinished node: for messages of a deadline that expired.
  std::string waiting() const;

  // State of everything decided so far. Loaded into a Schedule of the same graph, placement and options it goes on as
  // this one; of another placement, with the rows that are not done on the replicas there are. RunError when graph or
  // rows differ. In a new process the first event after load is Begin: what was open is started again.
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  std::unique_ptr<ScheduleCore> core_;
};

}  // namespace collimate::graph
