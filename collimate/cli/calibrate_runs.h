#pragma once

#include <map>
#include <string>
#include <vector>

#include "collimate/cli/plan_request.h"

namespace collimate::cli {

struct CalibrateOptions {
  std::string config;             // YAML of a run
  std::vector<std::string> sets;  // overrides of its keys
  int64_t iterations = 6;         // of each run, of which the first is not counted; at least 2
  int64_t devices = 1;            // CPU devices of one thread, each with the rows of the config
  bool quiet = false;             // says nothing on stderr of how the runs go
};

// One short run of a config's recipe with all models on all devices, and what it measured.
struct CalibrationRun {
  std::string name;                // "all rows"
  PlanRequest asked;               // as the planner sees what was run: graph, rows, realised lengths
  std::string prompt, completion;  // the lengths, as Lengths::parse reads them
  double longest = 0;              // completion, tokens
  std::map<int, double> seconds;   // by node of the graph, as plan::node_seconds
  double iteration_seconds = 0;    // median
};

// Runs the recipe in a directory that is removed, without evaluation: as it is, with half of the rows, and where it
// generates with completions half as long. Takes as long as that many iterations. InputError for what `train` refuses,
// and for a placement of other devices than CPUs; StoppedError on a signal.
std::vector<CalibrationRun> run_for_calibration(const CalibrateOptions& options);

}  // namespace collimate::cli
