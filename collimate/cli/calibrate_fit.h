#pragma once

#include <utility>
#include <vector>

#include "collimate/cli/calibrate_runs.h"
#include "collimate/plan/calibrate/calibrate.h"
#include "collimate/plan/plan.h"

namespace collimate::cli {

// Measured holds the seconds that each function took in calibration runs.
struct Measured {
  std::vector<collimate::plan::Observation> observations;
  std::vector<collimate::plan::HostObservation> hosts;
};
// Collects the times of all runs. Throws RunError when a run has no time for a function.
Measured measured_in(const std::vector<CalibrationRun>& runs);

// Returns the costed plan with all models on all devices, which is how calibration runs them.
collimate::plan::Plan flat_plan(const collimate::plan::Request& request);

// Fits constants to the measurements, starting from the constants of CPU devices (plan::calibrate).
collimate::plan::Calibration fit(const Measured& measured);
// Returns each constant that the runs determine, with its fitted value.
std::vector<std::pair<const collimate::plan::ConstantInfo*, double>> found_in(
    const collimate::plan::Calibration& fitted);

}  // namespace collimate::cli
