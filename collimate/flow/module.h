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

// A RetryableError is a failure that may not happen again: a lost connection, a busy server. The schedule retries the
// rows.
class RetryableError : public base::RunError {
 public:
  using base::RunError::RunError;
};

// A Stream is one running call of a function that streams (`FunctionSpec::streams`). The worker feeds rows as they
// arrive, closes when no more come, and between messages runs one step at a time. Results may come in any order; each
// fed row comes out once. Checkpoints hold nothing of a stream: rows that were in flight are fed again to a new one.
// Ranks of a replica that get the same rows (tp, cp, pp) step together (flow/lockstep.h): a step may use the context's
// lines, and what it does must depend only on the requests and steps before it.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void feed(const Batch& rows) = 0;
  virtual void close() = 0;
  // Does one bounded piece of work and returns. Returns false when there is nothing to do before the next feed or
  // resume.
  virtual bool step() = 0;
  // Returns the rows finished since the last take, or an empty batch when there are none.
  virtual Batch take() = 0;
  // Says whether the stream is closed and every row has been taken.
  virtual bool done() const = 0;
  virtual void cancel(std::span<const int64_t> uids) = 0;
  virtual void pause() = 0;
  virtual void resume() = 0;
};

// A Module is what a user wraps: named functions over batches. There is one object per rank of a replica, and only its
// worker's thread uses it. Every method may block that thread for as long as its work takes, but may not wait for what
// a later message brings. A function is reached through exactly one of call, open and train_step, by its spec (kind
// train → train_step, `streams` → open, else call). An exception thrown by any of them fails the task and becomes
// its first cause; only a RetryableError makes the schedule try again.
class Module : public base::Stateful {
 public:
  // Returns names and contracts of all functions. It must work without setup, because graphs are traced and validated
  // with it.
  virtual std::vector<graph::FunctionSpec> functions() const = 0;
  // Returns from shapes and limits alone what setup and the longest calls will take of the device's memory, by item.
  // Modules of a worker that share an object name its items alike. It is called before any setup of the worker.
  virtual std::vector<tensor::MemoryItem> memory(const Context&) const { return {}; }
  // Runs before the first call: loads weights and allocates. `context` outlives the module.
  virtual void setup(Context& context) = 0;

  // `input` is this rank's rows of one feed (of the whole iteration, in row order, for granularity iteration), with all
  // columns that led to them. Returns the columns made; those of the input need not be repeated. The rows are in the
  // input's order, or there are fewer rows, with their uids; the missing ones are dropped.
  virtual Batch call(const std::string& function, const Batch& input, const CallInfo& info);
  virtual std::unique_ptr<Stream> open(const std::string& function, const CallInfo& info);
  // Makes one optimizer update per batch, in order. A batch holds this rank's rows of that update, sorted by uid (pairs
  // stay together, chosen first). The node's parameters cut the updates: rows_per_update (0: all), epochs (1).
  virtual void train_step(const std::string& function, std::span<const Batch> updates, const CallInfo& info);

  // Moves the model to its device before use, or off it. It is called only for models whose residency is swap. Such a
  // model is set up on its device and then moved off. It is on its device for everything else that is asked of it,
  // except for save and load if it keeps no state.
  virtual void reside(bool /*on_device*/) {}
  // Writes what a user takes away (a Hugging Face directory) into `directory`, which exists. It is called at once on
  // all ranks that together hold the model's first copy: the first ep copies over dp and cp, or all ranks where ZeRO
  // divides the weights. Only the first one's checksum is used.
  virtual void save_checkpoint(const std::string& directory, int64_t iteration);
  // Returns the weights that links read and write, or null.
  virtual WeightsPort* weights() { return nullptr; }
  // Returns the metrics measured since the last call, in a fixed order. It is called after every call of a function.
  // How rows are cut into feeds depends on timing, so a number that must have the same bits in every run is measured by
  // a function of granularity iteration. Every data-parallel rank reports on its own rows; a value that is equal on all
  // of them, because it was reduced over a line of the context, is reported by the first rank alone.
  virtual std::vector<Metric> metrics() { return {}; }

  // Says, like memory() before any setup, whether save() has anything to write. If not, a model that takes turns is not
  // brought to its device for a save.
  virtual bool keeps_state(const Context&) const { return true; }
  // These save and load the state of the module across iterations, in the run's checkpoint. Shared weights are saved by
  // the model that trains them.
  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;
};

}  // namespace collimate::flow
