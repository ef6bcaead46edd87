#pragma once

#include <map>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/graph/placement.h"
#include "collimate/plan/cost/phase.h"
#include "collimate/plan/inputs/request.h"

namespace collimate::plan {

// Bytes that a model, function and purpose hold on a device.
struct HeldItem {
  std::string owner;  // "policy_trainer" or "policy_trainer.train"
  std::string what;
  double bytes = 0;

  COLLIMATE_FIELDS(owner, what, bytes)
};

// One function of the graph on its devices.
struct Call {
  int node = 0;
  std::string model, function;
  std::vector<int> devices;
  Execution how;
  PhaseTime time;
  double seconds = 0;                         // of an iteration's rows; of a swapped model without its moves
  double begin_seconds = 0, end_seconds = 0;  // in the iteration that the simulator took as typical
  bool swapped = false;
  double load_seconds = 0;           // of its moves in an iteration, where it is swapped
  std::vector<HeldItem> held, used;  // between phases, where its weights are not another's; and beside that at work
};

// Devices of one kind with the same models hold this. The peak is what stays plus what the largest phase needs beside
// it.
struct DeviceMemory {
  std::vector<int> devices;
  double usable_bytes = 0;  // of one
  std::vector<HeldItem> resident;
  std::vector<HeldItem> peak;  // of the phase that needs most
  double resident_bytes = 0, peak_bytes = 0;
};

// A placement with what it costs.
struct Plan {
  std::string form;   // "flattening", "split", …
  std::string parts;  // "policy+policy_trainer 8 | reference 4", with the kinds where there are several
  graph::Placement placement;
  std::vector<Call> calls;
  std::vector<DeviceMemory> memory;
  double estimated_seconds = 0;          // by which the search ranked; 0 for a placement that it did not make
  double seconds = 0;                    // between ends of iterations, in the runtime's own schedule
  double peak_bytes = 0;                 // of the fullest device
  std::vector<double> transfer_seconds;  // by link of the graph
};

// Costs and memory of any placement of the request's graph, by hand or from search. Times between iterations are
// simulate_plan's. InputError where the placement does not suit the graph or the cluster.
Plan cost_placement(const Request& request, const graph::Placement& placement);
// Seconds of an iteration in which each swapped model comes, and what it has changed leaves.
std::map<std::string, double> load_seconds(const Plan& plan);
// The sum of these over the models of a device, of the device that has most.
double seconds_of_moves(const Plan& plan);
// The cluster's devices on which a plan has no model.
std::vector<int> unused_devices(const Request& request, const Plan& plan);
// Says what does not fit, naming a device, its kind where there are several, and the largest item; "" when all does.
std::string misfit_of(const Request& request, const Plan& plan);

}  // namespace collimate::plan
