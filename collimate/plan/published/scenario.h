#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>

#include "collimate/plan/cost/job.h"
#include "collimate/plan/published/row.h"

namespace collimate::plan::published {

// How the devices are shared out.
enum class Sharing { kColocated, kTwoSides, kGroups };

// What a role's text says of its layout; 0 where it says nothing.
struct RoleLayout {
  int tp = 0, pp = 0, ep = 0, devices = 0;
};

// A published run in the terms of the cost model. Everything is read from what the row says of the run, nothing from
// which row or paper it is.
struct Scenario {
  std::string backend;
  Gpu gpu;
  int devices = 0;
  std::map<std::string, shape::Outline> models;  // actor, and critic, ref, reward where there are any
  Workload load;
  double epoch_rows = 0;  // of a whole epoch, where the row speaks of one
  Sharing sharing = Sharing::kColocated;
  int train_devices = 0, generate_devices = 0;  // of kTwoSides
  std::map<std::string, int> group_devices;     // of kGroups: actor, critic, ref, reward, generate
  double staleness = 0;                         // share of an iteration's rows that may be old; 1: a whole iteration
  bool searched = false;                        // the system chose each function's layout itself
  bool recomputes_log_probs = false;
  bool zero3 = false, offload = false, recompute = false, fp8 = false;
  int64_t lora_rank = 0, micro_batch = 0;
  std::map<std::string, RoleLayout> layouts;  // generate, train, reward, ref, critic; "" for all others
  // What is said of a role, else of all.
  RoleLayout layout(const std::string& role) const;
};

// The scenario, or why there is none.
std::variant<Scenario, std::string> scenario_of(const Row& row);
// The same run by the row's baseline system, in that system's own set-up.
std::variant<Scenario, std::string> baseline_of(const Row& row);

// The back end whose software a system is; "" for one that is not modelled.
std::string backend_of(const std::string& system);

}  // namespace collimate::plan::published
