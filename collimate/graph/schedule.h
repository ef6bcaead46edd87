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
  int64_t iterations = 1;       // the run ends before the iteration of this number
  int64_t rows = 1;             // samples per iteration; a multiple of group_size
  int64_t group_size = 1;       // samples per prompt
  int64_t staleness = -1;       // -1: as the placement says
  int64_t save_every = 0;       // iterations; 0: never. If > 0, the last iteration is saved too
  int64_t evaluate_every = 0;
  bool evaluate_first = false;
  // With staleness, an iteration uses exactly the version of weights that it waits for, and a checkpoint has the
  // weights that links wrote, so that results do not depend on the clock.
  bool exact_versions = false;
  bool update_in_flight = false;  // weights reach a running service between two of its steps; otherwise when it is idle
  int64_t replace_limit = 10;     // most rows that an iteration asks for, as a multiple of `rows`
  // An iteration of which a node that is called once has no rows goes on without that call; otherwise the run stops.
  // Needs staleness 0.
  bool may_be_empty = false;
  int retries = 2;  // of a node in an iteration, after retryable failures
  double lost_timeout_seconds = 600;
  // If > 0, iterations come in epochs of so many, and the last one of each has `last_rows` samples in place of `rows`.
  int64_t epoch_iterations = 0;
  int64_t last_rows = 0;

  // Returns how many samples an iteration has.
  int64_t rows_in(int64_t iteration) const {
    return epoch_iterations > 0 && (iteration + 1) % epoch_iterations == 0 ? last_rows : rows;
  }
  bool operator==(const ScheduleOptions&) const = default;

  COLLIMATE_FIELDS(first_iteration, iterations, rows, group_size, staleness, save_every, evaluate_every, evaluate_first,
                   exact_versions, update_in_flight, replace_limit, may_be_empty, retries, lost_timeout_seconds,
                   epoch_iterations, last_rows)
};

class ScheduleCore;

// A Schedule decides what runs where and when. It is a deterministic function from the events so far to actions,
// without clock, thread or I/O. The executor starts nothing except in answer to an action, and reports everything that
// happens as an event.
//  - A worker runs one task at a time. Tasks start on it in the order (iteration, node), so that no wait is circular.
//  - A row- or group-granular node starts when its worker is free and rows for it are ready, and is fed while its
//    producers go on; an iteration-granular one starts when its inputs are complete. Sample group g of G has its home
//    on replica g·R/G of R.
//  - Iteration i starts when all before i − staleness are complete. A node whose model is the destination of a link
//    waits for version floor((i − staleness) / every)·every. A model's version is the number of iterations that
//    trained it.
//  - With exact_versions a node waits for exactly that version, or for the weights of the last evaluation before it if
//    those are newer, and a transfer waits for every iteration that draws by older weights. A worker that was lost gets
//    the newest weights, because older ones no longer exist. A save waits for running tasks.
//  - Rows that a function with `drops_rows` drops are replaced by new rows; rows dropped elsewhere are missing.
//  - Weights are transferred along every link at the beginning and for a worker that is back.
//  - Evaluations take place one after the other, after the weights of their iteration have arrived everywhere. Running
//    tasks end with the rows they have, and no task of the run's own graph starts before all evaluations are done.
//  - A model with residency swap is absent at first, and on its workers while a task, a transfer or a save uses it. It
//    stays as long as the memory's budget has room for it beside the models in use.
// A Schedule can be copied and is not thread-safe. Events about tasks that are gone are ignored. The constructor throws
// InputError as validate does, and for options or filters that cannot work.
class Schedule final : public base::Stateful {
 public:
  explicit Schedule(const Graph& graph, const Placement& placement, const ScheduleOptions& options,
                    std::span<const EvaluationGraph> evaluations = {}, const DeviceMemory& memory = {});
  Schedule(const Schedule& other);
  Schedule& operator=(const Schedule& other);
  Schedule(Schedule&&) noexcept;
  Schedule& operator=(Schedule&&) noexcept;
  ~Schedule() override;

  // Takes an event and returns the actions that follow, in the order in which they are to be issued. They are valid
  // until the next call.
  std::span<const Action> on(const Event& event);

  // Returns, for a schedule that has stopped, the loads and off-loads, in order, after which the named model is the
  // only swapped model on its workers, or none is for "". They count as done. `at_setup` says that no event has come to
  // this process and the models are as at setup.
  std::vector<Action> bring(const std::string& model, bool at_setup);

  bool stopped() const;
  // Returns the number of iterations complete so far, counted from first_iteration.
  int64_t completed() const;
  // Returns who waits for what, one line per unfinished node, for messages about a deadline that expired.
  std::string waiting() const;

  // These save and load the state of everything decided so far. A Schedule of the same graph, placement and options
  // that loads it goes on as this one would; with another placement it puts the rows that are not done on the replicas
  // of that placement. load throws RunError when graph or rows differ. In a new process the first event after load is
  // Begin, which starts again what was open.
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  std::unique_ptr<ScheduleCore> core_;
};

}  // namespace collimate::graph
