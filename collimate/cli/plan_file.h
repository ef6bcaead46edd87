#pragma once

#include <string>

#include "collimate/graph/placement.h"
#include "collimate/plan/simulate/simulate_plan.h"

namespace collimate::cli {

// A SimulatedFile is a placement file as the planner costs and simulates it.
struct SimulatedFile {
  collimate::plan::Plan plan;
  collimate::plan::PlanSimulation simulated;
};

// Costs a placement and simulates it in the runtime's schedule, in virtual time. Throws InputError, naming `file`, when
// the placement names devices that the request's cluster lacks, or is for devices of another kind.
SimulatedFile simulate_file(const collimate::plan::Request& request, const graph::Placement& placement,
                            const std::string& file);

}  // namespace collimate::cli
