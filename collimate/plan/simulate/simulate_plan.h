#pragma once

#include "collimate/plan/plan.h"
#include "collimate/plan/simulate/simulate.h"

namespace collimate::plan {

// A PlanSimulation is a plan run in virtual time by the runtime's own schedule. With many devices, neighbours that
// always do the same are simulated as one worker.
struct PlanSimulation {
  Simulation simulation;
  double period_seconds = 0;  // between ends of iterations once the first are over
  int64_t typical_iteration = 0;
  double typical_begin_seconds = 0, typical_end_seconds = 0;
  int64_t rows = 0;
  graph::Placement placement;  // that ran: the plan's, or with one device for each devices_per_worker
  int devices_per_worker = 1;
};

// Predicts the seconds of each task of a plan's calls in a placement, by its share of the function's `rows` rows, and
// those of loads and new weights by their bytes. A load includes writing back; an off-load takes no time of its own.
Predictions predictions_of(const Request& request, const Plan& plan, const graph::Placement& placement, int64_t rows);
PlanSimulation simulate_plan(const Request& request, const Plan& plan);
// Sets the plan's period, and when its functions begin and end in the typical iteration.
void set_times(Plan& plan, const PlanSimulation& simulated);

}  // namespace collimate::plan
