#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "collimate/plan/simulate/simulate_plan.h"

namespace collimate::plan {

// A Block is work of a device from `begin_seconds` to `end_seconds` of a period.
struct Block {
  int call = -1;      // index in Plan::calls; -1: new weights, or a load or off-load
  std::string label;  // "policy.generate", "policy_trainer -> policy", "load reference"
  double begin_seconds = 0, end_seconds = 0;
};

// A Bubble is a time in which a device has no work, with the name of what it waits for.
struct Bubble {
  double begin_seconds = 0, end_seconds = 0;
  std::string cause;  // "reference.log_probs", "the next iteration", …
};

// A Lane shows one device, which stands for all devices of its kind with the same functions.
struct Lane {
  std::vector<int> devices;
  std::string label;  // "0-7", with the kind where the cluster has several
  std::vector<Block> blocks;
  std::vector<Bubble> bubbles;
  double idle_seconds = 0;
};

// A Timeline shows one steady period of a plan.
struct Timeline {
  double seconds = 0;
  std::vector<Lane> lanes;
};
Timeline timeline_of(const Request& request, const Plan& plan, const PlanSimulation& simulated);

// Returns the whole simulation for chrome://tracing or Perfetto: one process with a thread for every device and host
// worker, and times in microseconds of virtual time.
nlohmann::ordered_json chrome_trace(const Request& request, const Plan& plan, const PlanSimulation& simulated);

// Writes devices as ranges: "0-7", "0-3,8".
std::string devices_text(const std::vector<int>& devices);
// Names devices of one kind, with the kind where the cluster has several: "0-7 A100-80".
std::string devices_text(const Cluster& cluster, const std::vector<int>& devices);

}  // namespace collimate::plan
