#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/graph/schedule_facts.h"

namespace collimate::graph {

// An evaluation, by name, and the iteration after which it takes place.
struct EvaluationDue {
  std::string evaluation;
  int64_t iteration = 0;
  bool at_end = false;  // for no other reason than that the iteration is the run's last
  bool operator==(const EvaluationDue&) const = default;
  COLLIMATE_FIELDS(evaluation, iteration, at_end)
};

// A save for which models have to be brought to their workers.
struct SaveDue {
  int64_t iteration = 0;
  std::vector<std::string> models;  // those that are still to be saved, one after the other
  std::string stop_cause;           // why the run stops behind it; "": it goes on
  COLLIMATE_FIELDS(iteration, models, stop_cause)
};

// Decides what takes place between iterations: saving, evaluations, a stop, because the options say so or somebody
// asked. What is wanted begins when the workers are free, and until all of it has ended no task of the run's own graph
// starts. A save comes before the evaluations of its iteration, and these come one after the other. Internal to
// schedule*.cpp.
class Barrier {
 public:
  using Pass = EvaluationDue;
  using Save = SaveDue;

  // The first event; `first` is the first iteration.
  void begin(const std::vector<EvaluationTimes>& evaluations, int64_t first);
  // A new process goes on: an evaluation that ran is wanted again, what the other process was asked is forgotten but
  // for evaluations. Evaluations that there are no more are forgotten too, and those at the end of a run that now goes
  // on behind it.
  void restart(const ScheduleFacts& facts);
  void ask(Ask ask);
  bool stop_asked() const { return stop_asked_; }

  // Says what follows an iteration that is complete; evaluations are wanted from now on.
  struct Due {
    bool save = false;
    bool stop = false;
  };
  Due after(const ScheduleFacts& facts, int64_t iteration);
  // Whether the iteration's tasks may not start; `front` is the oldest one in progress.
  bool holds(int64_t iteration, int64_t front) const { return open() || (stop_asked_ && iteration > front); }
  // Something is wanted or takes place.
  bool open() const { return saving_ || !evaluations_wanted_.empty(); }

  void want(Save save) { saving_ = std::move(save); }
  std::optional<Save>& save() { return saving_; }
  const std::optional<Save>& save() const { return saving_; }

  // The next evaluation, where none runs.
  std::optional<Pass> wanted() const {
    return evaluating_ || evaluations_wanted_.empty() ? std::nullopt : std::optional(evaluations_wanted_[0]);
  }
  void evaluate() { evaluating_ = true; }
  void evaluated();

  COLLIMATE_MEMBERS(stop_asked, save_asked, evaluate_asked, evaluations_wanted, evaluating, saving)

 private:
  bool stop_asked_ = false, save_asked_ = false, evaluate_asked_ = false;
  std::vector<Pass> evaluations_wanted_;  // in their order
  bool evaluating_ = false;               // the first of them
  std::optional<Save> saving_;
};

}  // namespace collimate::graph
