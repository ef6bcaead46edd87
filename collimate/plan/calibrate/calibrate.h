#pragma once

#include <string>
#include <vector>

#include "collimate/plan/cost/phase.h"

namespace collimate::plan {

// An Observation is one function of a model as a run measured it.
struct Observation {
  std::string run;       // "all rows"
  std::string function;  // "policy.generate"
  Job job;
  Execution how;
  double seconds = 0;  // of an iteration
};

// A HostObservation is one call of a host function on an iteration's rows, as a run measured it.
struct HostObservation {
  std::string run, function;
  double rows = 0, seconds = 0;
};

struct Calibration {
  Constants constants;
  std::vector<const ConstantInfo*> found;  // constants that the observations determine, in the table's order
  std::vector<double> fitted_seconds;      // by observation
};

// Returns the constants whose predictions are nearest to what was measured; those that no observation depends on keep
// the values of `start`. The fit minimises the squares of (predicted - measured) / measured within the table's limits;
// one half of an observation's weight is the same for all, the other its share of all seconds. Predictions are linear
// in seconds and in the inverse of shares, but where one bound takes over from another, so every step solves a linear
// problem; where several constants would do alike, they stay near those of `start`. A share that the runs drive to its
// limit, so that the time which it divides vanishes, keeps its start and is not found. A layer's least time becomes 0:
// it stands for launches that run ahead, and a CPU's calls do not. The result is deterministic. Throws InputError
// without observations or for a time that is not above 0.
Calibration calibrate(const std::vector<Observation>& observations, const std::vector<HostObservation>& hosts,
                      const Constants& start);

}  // namespace collimate::plan
