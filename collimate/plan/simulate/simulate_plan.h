#pragma once

#include "collimate/plan/plan.h"
#include "collimate/plan/simulate/simulate.h"

namespace collimate::plan {

// A plan in the runtime's own schedule, in virtual time. Of many devices, those that always do the same are one.
struct PlanSimulation {
  Simulation simulation;
  double period_seconds = 0;  // between ends of iterations once the first are over
  int64_t typical_iteration = 0;
  double typical_begin_seconds = 0, typical_end_seconds = 0;
  int64_t rows = 0;
  graph::Placement placement;  // what ran: the plan's, or where devices work in step one for so many of them
  int devices_per_worker = 1;
};

// Predicts what each task takes that a placement makes of a plan's calls: its share of the function's rows; loads,
// off-loads and new weights by their bytes.
Predictions predictions_of(const Request& request, const Plan& plan, const graph::Placement& placement, int64_t rows);
PlanSimulation simulate_plan(const Request& request, const Plan& plan);
// The plan's period, and when its functions begin and end in the typical iteration.
void set_times(Plan& plan, const PlanSimulation& simulated);

}  // namespace collimate::plan
