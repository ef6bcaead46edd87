#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>

#include "collimate/plan/cost/job.h"
#include "collimate/plan/published/row.h"

namespace collimate::plan::published {

// How the devices are shared out: all for everything, generation on its own ones, or sets of models.
enum class Sharing { kColocated, kTwoSides, kGroups };

// What a role's text says of its layout; 0 where it says nothing.
struct RoleLayout {
  int tp = 0, pp = 0, ep = 0, devices = 0, cp = 0;
  int dp = 0;  // of what says its tp too
};

// Where a role of kGroups runs: roles of one set take turns, sets work side by side unless one has all devices.
struct Place {
  int devices = 0, set = 0;
};

// A published run in the terms of the cost model. Everything is read from what the row says of the run, nothing from
// which row or paper it is.
struct Scenario {
  std::string backend;
  DeviceKind gpu;
  int devices = 0;
  std::map<std::string, shape::Outline> models;  // actor, and critic, ref, reward where there are any
  Workload load;
  // Of completions that are not all of one length: what the row gives of the mean (0: nothing) and the cap.
  double mean_completion = 0, completion_cap = 0;
  bool short_answers = false;  // of a model that does not reason at length, where only the cap is given
  double run_rows = 0;         // of a whole epoch or run, where the row speaks of one
  Sharing sharing = Sharing::kColocated;
  int train_devices = 0, generate_devices = 0;  // of kTwoSides
  std::map<std::string, Place> places;          // of kGroups: actor, critic, ref, reward, generate
  double staleness = 0;                         // share of an iteration's rows that may be old; 1: a whole iteration
  bool continuous = false;        // rollouts go on across weight updates: no iteration waits for its last rows
  bool searched = false;          // the system chose each function's layout itself
  bool sharded_training = false;  // ZeRO-3 or FSDP: no cut of the model unless the row gives one
  bool recomputes_log_probs = false;
  int generations = 1, rewards = 1;  // passes over the rows: ReMax's greedy baseline, Safe-RLHF's cost model
  int train_sets = 1;                // of rows of an actor's update: 2 with a pretraining loss beside it
  bool zero3 = false, offload = false, recompute = false, fp8 = false;
  int64_t lora_rank = 0, micro_batch = 0;
  bool unfused = false;                       // decoding kernels that are not for this model's layers
  double call_rows = 0;                       // that a device decodes in one call, where the row says so
  std::map<std::string, RoleLayout> layouts;  // generate, train, reward, ref, critic; "" for all others
  // What is said of a role, else of all.
  RoleLayout layout(const std::string& role) const;
};

// The scenario, with lengths that a row does not give as its back end's constants have them; or why there is none.
std::variant<Scenario, std::string> scenario_of(const Row& row);
// The same run by the row's baseline system, in that system's own set-up.
std::variant<Scenario, std::string> baseline_of(const Row& row);
// The scenario with completions spread, and where only their cap is given as long, as these constants say.
Scenario with_lengths(Scenario scenario, const Constants& constants);

// The back end whose software a system is; "" for one that is not modelled.
std::string backend_of(const std::string& system);

}  // namespace collimate::plan::published
