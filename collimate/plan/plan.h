#pragma once

#include <map>
#include <string>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/graph/placement.h"
#include "collimate/plan/cost/phase.h"
#include "collimate/plan/inputs/request.h"

namespace collimate::plan {

// A HeldItem is the bytes that a function of a model holds on one device for one purpose.
struct HeldItem {
  std::string owner;  // "policy_trainer.train"
  std::string what;
  double bytes = 0;

  COLLIMATE_FIELDS(owner, what, bytes)
};

// A Call is one function of the graph on its devices.
struct Call {
  int node = 0;
  std::string model, function;
  std::vector<int> devices;
  Execution how;
  PhaseTime time;
  double seconds = 0;                         // for an iteration's rows, without the moves of a swapped model
  double begin_seconds = 0, end_seconds = 0;  // in the simulator's typical iteration
  bool swapped = false;
  double load_seconds = 0;           // of a swapped model's moves in an iteration
  std::vector<HeldItem> held, used;  // held: between phases (not if read in place); used: beside that, while it runs
};

// DeviceMemory describes each of `devices`, which are of one kind and have the same models. The peak is what stays plus
// what the largest phase needs beside it.
struct DeviceMemory {
  std::vector<int> devices;
  double usable_bytes = 0;  // of one device
  std::vector<HeldItem> resident;
  std::vector<HeldItem> peak;  // beside what stays, in the phase that needs most
  double resident_bytes = 0, peak_bytes = 0;
};

// A Plan is a placement with its costs.
struct Plan {
  std::string form;   // "flattening", "split", …
  std::string parts;  // "policy+policy_trainer 8 | reference 4", with the kinds where there are several
  graph::Placement placement;
  std::vector<Call> calls;
  std::vector<DeviceMemory> memory;
  double estimated_seconds = 0;          // the search's estimate of `seconds`; 0 for a placement that it did not make
  double seconds = 0;                    // between ends of iterations in the runtime's own schedule; set by set_times()
  double peak_bytes = 0;                 // of the fullest device
  std::vector<double> transfer_seconds;  // by link of the graph
};

// Returns the costs and memory of a placement of the request's graph, which the user or the search made. Times between
// iterations are left to simulate_plan(). Throws InputError where the placement does not suit the graph or the cluster.
Plan cost_placement(const Request& request, const graph::Placement& placement);
// Returns, by swapped model, the seconds of an iteration in which it is loaded and what it has changed is written back.
std::map<std::string, double> load_seconds(const Plan& plan);
// Returns the sum of load_seconds() over the models of one device, for the device on which it is largest.
double seconds_of_moves(const Plan& plan);
// Returns the cluster's devices on which a plan has no model.
std::vector<int> unused_devices(const Request& request, const Plan& plan);
// Says what does not fit, naming a device, its kind where there are several, and the largest item, or gives the reason
// of Request::excess; "" when everything fits.
std::string misfit_of(const Request& request, const Plan& plan);

}  // namespace collimate::plan
