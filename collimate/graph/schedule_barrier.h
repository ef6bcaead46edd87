#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/graph/schedule_facts.h"

namespace collimate::graph {

// An EvaluationDue is an evaluation, by name, and the iteration after which it takes place.
struct EvaluationDue {
  std::string evaluation;
  int64_t iteration = 0;
  bool at_end = false;  // only because the iteration is the run's last
  bool operator==(const EvaluationDue&) const = default;
  COLLIMATE_FIELDS(evaluation, iteration, at_end)
};

// A SaveDue is a save for which models have to be brought to their workers.
struct SaveDue {
  int64_t iteration = 0;
  std::vector<std::string> models;  // still to be saved, one after the other
  std::string stop_cause;           // why the run stops after the save; "": it goes on
  COLLIMATE_FIELDS(iteration, models, stop_cause)
};

// A Barrier decides what takes place between iterations because the options say so or somebody asked: a save,
// evaluations, a stop. It begins when the workers are free, and until all of it has ended no task of the run's own
// graph starts. A save comes before the evaluations of its iteration, which come one after the other. Internal to
// schedule*.cpp.
class Barrier {
 public:
  using Pass = EvaluationDue;
  using Save = SaveDue;

  // Handles the first event. `first` is the first iteration.
  void begin(const std::vector<EvaluationTimes>& evaluations, int64_t first);
  // Prepares for a new process that goes on. An evaluation that ran is wanted again. A stop or save that the other
  // process was asked for is forgotten, but not evaluations. Evaluations that no longer exist are forgotten, and so are
  // those that were due only at the end of a run that is now longer.
  void restart(const ScheduleFacts& facts);
  void ask(Ask ask);
  bool stop_asked() const { return stop_asked_; }

  // Returns what follows an iteration that is complete. Its evaluations are wanted from now on.
  struct Due {
    bool save = false;
    bool stop = false;
  };
  Due after(const ScheduleFacts& facts, int64_t iteration);
  // Says whether the iteration's tasks may not start; `front` is the oldest iteration in progress.
  bool holds(int64_t iteration, int64_t front) const { return open() || (stop_asked_ && iteration > front); }
  // Says whether something is wanted or takes place.
  bool open() const { return saving_ || !evaluations_wanted_.empty(); }

  void want(Save save) { saving_ = std::move(save); }
  std::optional<Save>& save() { return saving_; }
  const std::optional<Save>& save() const { return saving_; }

  // Returns the next evaluation, or nothing while one runs.
  std::optional<Pass> wanted() const {
    return evaluating_ || evaluations_wanted_.empty() ? std::nullopt : std::optional(evaluations_wanted_[0]);
  }
  void evaluate() { evaluating_ = true; }
  void evaluated();

  COLLIMATE_MEMBERS(stop_asked, save_asked, evaluate_asked, evaluations_wanted, evaluating, saving)

 private:
  bool stop_asked_ = false, save_asked_ = false, evaluate_asked_ = false;
  std::vector<Pass> evaluations_wanted_;  // in the order in which they take place
  bool evaluating_ = false;               // the first of them runs
  std::optional<Save> saving_;
};

}  // namespace collimate::graph
