#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/stateful.h"
#include "collimate/batch/batch.h"
#include "collimate/flow/context.h"
#include "collimate/flow/metric.h"
#include "collimate/flow/weights_port.h"
#include "collimate/graph/function_spec.h"
#include "collimate/tensor/allocator.h"

namespace collimate::flow {

// A failure that may not happen again: a lost connection, a busy server. The schedule retries the rows.
class RetryableError : public base::RunError {
 public:
  using base::RunError::RunError;
};

// One running call of a function that streams (`FunctionSpec::streams`). The worker feeds rows as they arrive, closes
// when no more come, and between messages runs one step at a time. Results may come in any order; each fed row comes
// out once. Checkpoints hold nothing of it: rows that were in flight are fed again to a new stream. Ranks of a replica
// that get the same rows (tp, cp, pp) step together (flow/lockstep.h): a step may use the context's lines, and what it
// does must follow from what was asked and from the steps before alone.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void feed(const Batch& rows) = 0;
  virtual void close() = 0;
  // One bounded piece of work that returns. False when there is nothing to do before the next feed or resume.
  virtual bool step() = 0;
  // Rows finished since the last take; an empty batch when there are none.
  virtual Batch take() = 0;
  // Closed, and every row has been taken.
  virtual bool done() const = 0;
  virtual void cancel(std::span<const int64_t> uids) = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;
};

// A user wraps a module: named functions over batches. One object per rank of a replica, used by its worker's thread
// alone; every method may block that thread for as long as its work takes, and waits for nothing that a later message
// brings. A function is reached through exactly one of call, open and train_step, by its spec (kind train → train_step,
// `streams` → open, else call). An exception thrown by any of them fails the task and becomes its first cause; only a
// RetryableError makes the schedule try again.
class Module : public base::Stateful {
 public:
  // Names and contracts of what can be called. Known without setup: graphs are traced and validated with it.
  virtual std::vector<graph::FunctionSpec> functions() const = 0;
  // Tells from shapes and limits alone what setup and the longest calls will take of the device's memory, by item.
  // Modules of a worker that share an object name its items alike. Called before any setup of the worker.
  virtual std::vector<tensor::MemoryItem> memory(const Context&) const { return {}; }
  // Runs before the first call; loads weights, allocates. `context` outlives the module.
  virtual void setup(Context& context) = 0;

  // input: this rank's rows of one feed (of the whole iteration, in row order, for granularity iteration), with all
  // columns that led to them. Returns the columns made; those of the input need not be repeated. Rows in the input's
  // order, or fewer rows with their uids: the others are dropped.
  virtual Batch call(const std::string& function, const Batch& input, const CallInfo& info);
  virtual std::unique_ptr<Stream> open(const std::string& function, const CallInfo& info);
  // One optimizer update per batch, in order. A batch holds this rank's rows of that update, sorted by uid (pairs stay
  // together, chosen first). The node's parameters cut the updates: rows_per_update (0: all), epochs (1).
  virtual void train_step(const std::string& function, std::span<const Batch> updates, const CallInfo& info);

  // Loaded before use or moved off the device, in turn: only for models whose residency is swap. Such a one is set up
  // on its device and then moved off; whatever else is asked of it finds it there, but for save and load where it keeps
  // no state.
  virtual void reside(bool /*on_device*/) {}
  // Writes what a user takes away (a Hugging Face directory) into `directory`, which exists. Called on the ranks that
  // hold the model's first copy between them, all at once: those of dp 0, of which the first one's checksum counts.
  virtual void save_checkpoint(const std::string& directory, int64_t iteration);
  // The weights that links read and write, or null.
  virtual WeightsPort* weights() { return nullptr; }
  // Metrics measured since the last drain, in a fixed order; drained after every call. How rows are cut into feeds
  // depends on timing, so a number that must have the same bits in every run is measured by a function of granularity
  // iteration. Every data-parallel rank reports of its own rows; what is equal on all of them, as it was reduced over
  // a line of the context, is reported by its first rank alone.
  virtual std::vector<Metric> metrics() { return {}; }

  // Tells whether save() has anything to write, as memory() before any setup: where not, a model that takes turns is
  // brought to its device for no save.
  virtual bool keeps_state(const Context&) const { return true; }
  // State of the module across iterations, in the run's checkpoint. Shared weights are saved by the model that trains
  // them.
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;
};

}  // namespace collimate::flow
