#pragma once

#include <string>
#include <vector>

#include "collimate/plan/cost/phase.h"

namespace collimate::plan {

// One function of a model as a run measured it.
struct Observation {
  std::string run;       // "all rows"
  std::string function;  // "policy.generate"
  Job job;
  Execution how;
  double seconds = 0;  // of an iteration
};

// One call of a host function over an iteration's rows.
struct HostObservation {
  std::string run, function;
  double rows = 0, seconds = 0;
};

struct Calibration {
  Constants constants;
  std::vector<const ConstantInfo*> found;  // what the observations say something of, in the table's order
  std::vector<double> fitted_seconds;      // by observation
};

// The constants nearest to what was measured, from `start`; those that no observation depends on keep its values.
// Least squares of (predicted - measured) / measured within the table's limits; half of an observation's weight is its
// share of all seconds. Predictions are linear in seconds and in the inverse of shares but where one bound takes over
// from another, so every step solves a linear problem; where several constants would do alike, those of `start` are
// kept to. A share that the runs drive to its limit, so that what it divides takes no time, keeps its start and is not
// found. A layer's least time is 0: it stands for launches that run ahead, and a CPU's calls do not. Deterministic.
// InputError without observations or with a time that is not above 0.
Calibration calibrate(const std::vector<Observation>& observations, const std::vector<HostObservation>& hosts,
                      const Constants& start);

}  // namespace collimate::plan
