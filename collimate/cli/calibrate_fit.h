#pragma once

#include <utility>
#include <vector>

#include "collimate/cli/calibrate_runs.h"
#include "collimate/plan/calibrate/calibrate.h"
#include "collimate/plan/plan.h"

namespace collimate::cli {

// The functions of calibration runs, with the seconds that they took.
struct Measured {
  std::vector<collimate::plan::Observation> observations;
  std::vector<collimate::plan::HostObservation> hosts;
};
// Throws RunError where a run has no time of a function.
Measured measured_in(const std::vector<CalibrationRun>& runs);

// All models on all devices, as calibration runs them.
collimate::plan::Plan flat_plan(const collimate::plan::Request& request);

// The constants nearest to what was measured, from those of CPU devices (plan::calibrate).
collimate::plan::Calibration fit(const Measured& measured);
// Each of them that the runs determine, with its value.
std::vector<std::pair<const collimate::plan::ConstantInfo*, double>> found_in(
    const collimate::plan::Calibration& fitted);

}  // namespace collimate::cli
