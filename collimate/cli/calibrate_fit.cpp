#include "collimate/cli/calibrate_fit.h"

#include "collimate/base/error.h"
#include "collimate/plan/cost/functions.h"
#include "collimate/plan/inputs/backends.h"
#include "collimate/plan/simulate/simulate_plan.h"

namespace collimate::cli {

namespace plan_ = collimate::plan;

namespace {

void add_observations(const CalibrationRun& run, Measured& measured) {
  const plan_::Request& request = run.asked.request;
  const plan_::Functions functions(request);
  const plan_::Plan flat = flat_plan(request);
  for (size_t f = 0; f < functions.size(); ++f) {
    const plan_::Call& call = flat.calls[f];
    const std::string name = call.model + "." + call.function;
    const auto seconds = run.seconds.find(functions.at(f).node);
    if (seconds == run.seconds.end())
      throw base::RunError(base::expectation("calibrate, run '" + run.name + "'", "the time of " + name, "none"));
    if (functions.at(f).model < 0)
      measured.hosts.push_back({run.name, name, request.load.rows, seconds->second});
    else
      measured.observations.push_back(
          {run.name, name,
           plan_::job_of(request, functions, f, request.cluster.kinds(call.devices), request.cluster.devices()),
           call.how, seconds->second});
  }
}

}  // namespace

Measured measured_in(const std::vector<CalibrationRun>& runs) {
  Measured measured;
  for (const CalibrationRun& run : runs) add_observations(run, measured);
  return measured;
}

plan_::Plan flat_plan(const plan_::Request& request) {
  return plan_::cost_placement(request, graph::flattening(request.graph, request.cluster.devices()));
}

plan_::Calibration fit(const Measured& measured) {
  return plan_::calibrate(measured.observations, measured.hosts, plan_::constants_of(plan_::kOwnCpuBackend));
}

std::vector<std::pair<const plan_::ConstantInfo*, double>> found_in(const plan_::Calibration& fitted) {
  std::vector<std::pair<const plan_::ConstantInfo*, double>> found;
  for (const plan_::ConstantInfo* info : fitted.found) found.emplace_back(info, fitted.constants.*(info->member));
  return found;
}

}  // namespace collimate::cli
