#pragma once

#include <cstdint>
#include <optional>

#include "collimate/base/fields.h"
#include "collimate/graph/schedule.h"

namespace collimate::graph {

// Decides what takes place between iterations: saving, an evaluation, a stop, because the options say so or somebody
// asked. An evaluation is wanted first, runs when the workers are free, and until it has ended no task starts. Internal
// to schedule*.cpp.
class Barrier {
 public:
  // The first event; `first` is the first iteration.
  void begin(const ScheduleOptions& options, int64_t first) {
    if (options.evaluate_first) evaluation_ = first - 1;
  }
  // A new process goes on: an evaluation that ran is wanted again, what the other process was asked is forgotten but
  // for evaluations.
  void restart() { evaluating_ = stop_asked_ = save_asked_ = false; }
  void ask(Ask ask);
  bool stop_asked() const { return stop_asked_; }

  // Says what follows an iteration that is complete; an evaluation is wanted from now on.
  struct Due {
    bool save = false;
    bool stop = false;
  };
  Due after(const ScheduleOptions& options, int64_t iteration);
  // Whether the iteration's tasks may not start; `front` is the oldest one in progress.
  bool holds(int64_t iteration, int64_t front) const { return evaluation_ || (stop_asked_ && iteration > front); }

  // The iteration after which one is wanted or runs; the one that is wanted alone.
  const std::optional<int64_t>& evaluation() const { return evaluation_; }
  std::optional<int64_t> wanted() const { return evaluating_ ? std::nullopt : evaluation_; }
  void evaluate() { evaluating_ = true; }
  void evaluated();

  static void fields(auto& self, auto&& field) {
    field("stop_asked", self.stop_asked_);
    field("save_asked", self.save_asked_);
    field("evaluate_asked", self.evaluate_asked_);
    field("evaluation", self.evaluation_);
    field("evaluating", self.evaluating_);
  }

 private:
  bool stop_asked_ = false, save_asked_ = false, evaluate_asked_ = false;
  std::optional<int64_t> evaluation_;  // wanted or running
  bool evaluating_ = false;
};

}  // namespace collimate::graph
