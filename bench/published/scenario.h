#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/fields.h"
#include "collimate/base/words.h"
#include "collimate/plan/cost/job.h"
#include "collimate/plan/inputs/device_kind.h"

// This namespace compares published measurements with the cost model, for `collimate bench planner`.
namespace collimate::plan::published {

// Sharing says how the devices are shared: all of them for everything, generation on devices of its own, or sets of
// models on devices of their own.
enum class Sharing { kColocated, kTwoSides, kGroups };
constexpr auto words_of(Sharing) { return base::Words<Sharing, 3>{"sharing", {"colocated", "two_sides", "groups"}}; }

// A RoleLayout holds the sizes that a role's text gives for its layout; 0 means that it gives none.
struct RoleLayout {
  int tp = 0, pp = 0, ep = 0, devices = 0, cp = 0;
  int dp = 0;  // used only together with tp
};

// A Place is where a role of kGroups runs. Roles of one set take turns; sets run side by side, except one that has all
// devices.
struct Place {
  int devices = 0, set = 0;
};

// A Scenario is a published run in the terms of the cost model.
struct Scenario {
  std::string backend;
  DeviceKind gpu;
  int devices = 0;
  std::map<std::string, shape::Outline> models;  // actor, and critic, ref and reward if the run has them
  Workload load;
  // Mean and cap of completions that are not all of one length, in tokens. Mean 0: the row gives none. Cap 0: all
  // completions have one length.
  double mean_completion = 0, completion_cap = 0;
  bool short_answers = false;  // only the cap is given, and the model does not reason at length
  Sharing sharing = Sharing::kColocated;
  int train_devices = 0, generate_devices = 0;  // for kTwoSides
  std::map<std::string, Place> places;          // for kGroups: actor, critic, ref, reward, generate
  double staleness = 0;                         // share of an iteration's rows that may be old; 1: a whole iteration
  bool continuous = false;        // rollouts go on across weight updates: no iteration waits for its last rows
  bool searched = false;          // the system chose each function's layout itself
  bool sharded_training = false;  // ZeRO-3 or FSDP: tp and pp only in generation unless the row gives them
  bool recomputes_log_probs = false;
  int generations = 1, rewards = 1;  // passes over the rows; 2 with ReMax's greedy baseline, Safe-RLHF's cost model
  int train_sets = 1;                // sets of rows in an actor's update: 2 with a pretraining loss beside it
  bool zero3 = false, offload = false, recompute = false, fp8 = false;
  int64_t lora_rank = 0, micro_batch = 0;
  bool unfused = false;                       // decoding kernels are not fused for this model's layers
  double call_rows = 0;                       // rows that a device decodes in one call; 0: the row does not say
  std::map<std::string, RoleLayout> layouts;  // generate, train, reward, ref, critic; "" for all others

  // Lists what runs.py writes as it stands here; scenario_of reads the rest.
  COLLIMATE_FIELDS(backend, devices, mean_completion, completion_cap, short_answers, sharing, train_devices,
                   generate_devices, staleness, continuous, searched, sharded_training, recomputes_log_probs,
                   generations, rewards, train_sets, zero3, offload, recompute, fp8, lora_rank, micro_batch, unfused,
                   call_rows)

  // Returns the role's layout; sizes that it leaves out are those for all others.
  RoleLayout layout(const std::string& role) const;
};

// Returns the dense model of the table whose name has the size nearest to `billions`, and of several such models the
// one with the nearest number of parameters. Returns null if no name's size is within 12 %.
const shape::Outline* dense_outline(double billions);
// Reads a run as runs.py writes it. Lengths that it does not give come from its back end's constants.
Scenario scenario_of(const nlohmann::json& run, const DeviceKinds& kinds);
// Returns the scenario with completions spread around their mean up to the cap. If only the cap is given, the mean of
// short answers comes from the constants, and that of others is kReasonedShare of the cap.
Scenario with_lengths(Scenario scenario, const Constants& constants);
// The mean completion of models that reason at length, as a share of the cap: 0.19, 0.34 and 0.40 in the three of Seer
// (2511.14617), of which this is the median.
constexpr double kReasonedShare = 0.34;

}  // namespace collimate::plan::published
