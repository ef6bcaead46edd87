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

// kEnds: it saves and has ended, as one out of patience has. kStops: it saves and can go on; StoppedError.
enum class GoesOn { kYes, kEnds, kStops };

// How `train` is called, beside the config.
struct TrainCall {
  std::string output;              // the run's directory
  std::string resume = "auto";     // auto, never, or a run or a checkpoint of one to go on from
  bool shows_progress = true;      // on stderr
  bool overwrite = false;          // a run that `output` holds is removed before this one begins
  std::string replay;              // journal of a run of this config: its rewards are used, none is asked
  base::StopFlag* stop = nullptr;  // requested by a signal
  std::vector<std::string> worker_command;
  std::function<void(const std::string& line)> note;  // what a person should read: arithmetic, data shapes, evaluation
  // Is told each line of metrics.jsonl as it is written, and says how the run goes on.
  std::function<GoesOn(const base::MetricsRecord& record)> on_metrics;
  // The command that trains the same into another directory, for errors about this one; empty for none.
  std::function<std::string(const std::string& output)> command_for;
  std::function<void()> on_poll;  // on the driver's thread, several times a second; what it throws ends the run unsaved
};

struct TrainOutcome {
  nlohmann::ordered_json first_evaluation;  // empty without one
  nlohmann::ordered_json last_evaluation;
  nlohmann::ordered_json summary;
  std::string diverged;    // how its loss has, as LearningWatch::diverged; "" if it has not
  int64_t iterations = 0;  // of the run and their time, in whatever calls of train
  double seconds = 0;
};

// Runs the config's recipe to its end: data, plan, executor, records in the run's directory, the trained
// model as a Hugging Face directory in OUTPUT/model. A run that has ended, by its iterations or its patience, is not
// gone on with: its outcome is returned, its records stay as they are. A run of another config that no iteration was
// done of makes way. InputError, with nothing changed, when the directory holds another run, one that began with other
// files or data (recipe/run_inputs.h), or one that is going on, or when a model cannot read the data's rows
// (recipe/check_models.h).
TrainOutcome train(const Config& config, const TrainCall& call);

}  // namespace collimate::recipe
