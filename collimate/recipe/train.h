#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/metrics.h"
#include "collimate/base/stop.h"
#include "collimate/recipe/config.h"

namespace collimate::recipe {

// Says how a run goes on. kEnds: it saves and has ended, as a run out of patience has. kStops: it saves and can go on
// later, and train throws StoppedError.
enum class GoesOn { kYes, kEnds, kStops };

// Says how `train` is called, beside the config.
struct TrainCall {
  std::string output;              // the run's directory
  std::string resume = "auto";     // auto, never, or a run or a checkpoint of one to go on from
  bool shows_progress = true;      // on stderr
  bool overwrite = false;          // a run that `output` holds is removed before this one begins
  std::string replay;              // journal of a run of this config: its rewards are used, and none is computed
  base::StopFlag* stop = nullptr;  // requested by a signal
  std::vector<std::string> worker_command;
  std::function<void(const std::string& line)> note;  // what a person should read: arithmetic, data shapes, evaluation
  // train calls this with each line of metrics.jsonl as it is written. The result says how the run goes on.
  std::function<GoesOn(const base::MetricsRecord& record)> on_metrics;
  // Returns the command that trains the same into another directory, for errors about this one. Empty for none.
  std::function<std::string(const std::string& output)> command_for;
  std::function<void()> on_poll;  // on the driver's thread, several times a second; what it throws ends the run unsaved
};

struct TrainOutcome {
  nlohmann::ordered_json first_evaluation;  // empty without one
  nlohmann::ordered_json last_evaluation;
  nlohmann::ordered_json summary;
  std::string diverged;    // how a loss has diverged, as LearningWatch::diverged; "" if none has
  int64_t iterations = 0;  // of the whole run, in whatever calls of train, and so `seconds`
  double seconds = 0;
};

// Runs the config's recipe to its end, and leaves records in the run's directory and the trained model as a Hugging
// Face directory in OUTPUT/model. For a run that has ended, by its iterations or its patience, it returns the outcome
// and leaves the records as they are. A run of another config makes way where no iteration of it was done. Throws
// InputError, with nothing changed, when the directory holds another run, one that began with other files or data
// (recipe/run_inputs.h) or one that is going on, or when a model cannot read the data's rows (recipe/check_models.h).
TrainOutcome train(const Config& config, const TrainCall& call);

}  // namespace collimate::recipe
