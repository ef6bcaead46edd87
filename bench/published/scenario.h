#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "collimate/plan/cost/job.h"
#include "collimate/plan/inputs/device_kind.h"

// Published measurements against the cost model: `collimate bench planner`.
namespace collimate::plan::published {

// How the devices are shared out: all for everything, generation on its own ones, or sets of models.
enum class Sharing { kColocated, kTwoSides, kGroups };

// A RoleLayout holds what a role's text says of its layout; 0 where it says nothing.
struct RoleLayout {
  int tp = 0, pp = 0, ep = 0, devices = 0, cp = 0;
  int dp = 0;  // of what says its tp too
};

// A Place is where a role of kGroups runs: roles of one set take turns, sets run at once unless one has all devices.
struct Place {
  int devices = 0, set = 0;
};

// A published run in the terms of the cost model.
struct Scenario {
  std::string backend;
  DeviceKind gpu;
  int devices = 0;
  std::map<std::string, shape::Outline> models;  // actor, and critic, ref, reward where there are any
  Workload load;
  // Completions that are not all of one length have a mean (0: the row gives none) and a cap.
  double mean_completion = 0, completion_cap = 0;
  bool short_answers = false;  // of a model that does not reason at length, where only the cap is given
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
  // Gives what is said of the role, else of all.
  RoleLayout layout(const std::string& role) const;
};

// The dense model of the table whose name has the size nearest to so many billions, of several the one with the
// nearest number of parameters; null beyond 12 % from any.
const shape::Outline* dense_outline(double billions);
// Reads a run as runs.py writes it, with lengths that it does not give as its back end's constants have them.
Scenario scenario_of(const nlohmann::json& run, const DeviceKinds& kinds);
// The scenario with completions spread, and where only their cap is given as long, as these constants say.
Scenario with_lengths(Scenario scenario, const Constants& constants);
// Mean completion over its cap of models that reason at length: 0.19, 0.34 and 0.40 in Seer's three (2511.14617).
constexpr double kReasonedShare = 0.34;

}  // namespace collimate::plan::published
