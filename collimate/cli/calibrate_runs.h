#pragma once

#include <map>
#include <string>
#include <vector>

#include "collimate/cli/plan_request.h"

namespace collimate::cli {

struct CalibrateOptions {
  std::string config;             // YAML file of a run
  std::vector<std::string> sets;  // overrides of its keys
  int64_t iterations = 6;         // of each run, of which the first is not counted; at least 2
  int64_t devices = 1;            // CPU devices of one thread, each with as many rows as the config has
  bool quiet = false;             // prints no progress and no warnings to stderr
};

// A CalibrationRun is one short run of a config's recipe with all models on all devices, with its measurements.
struct CalibrationRun {
  std::string name;                // "all rows"
  PlanRequest asked;               // the run as a request to the planner: graph, rows, realised lengths
  std::string prompt, completion;  // the realised lengths, in the form that Lengths::parse reads
  double longest = 0;              // longest completion, tokens
  std::map<int, double> seconds;   // by node of the graph, as plan::node_seconds gives them
  double iteration_seconds = 0;    // median after the first iteration
};

// Runs the recipe up to three times without evaluation, in a temporary directory: as configured, with half of the rows,
// and, if it generates, with completions half as long. Each run trains for real and takes options.iterations
// iterations. Throws InputError for what `train` refuses, for more devices than cores and for a placement on other
// devices than CPUs; throws StoppedError on a signal.
std::vector<CalibrationRun> run_for_calibration(const CalibrateOptions& options);

}  // namespace collimate::cli
