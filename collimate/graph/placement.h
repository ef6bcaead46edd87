#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/base/fields.h"
#include "collimate/base/words.h"
#include "collimate/graph/graph.h"
#include "collimate/shape/context_heads.h"

namespace collimate::graph {

// A Layout holds the sizes of one function's layout. A replica has tp·pp·cp·dp ranks; ep divides dp·cp·tp. With dp
// 0 a function of kind train, which has exactly one replica, uses all devices of the group, and the others have dp 1
// and as many replicas as fit on the group.
struct Layout {
  int tp = 1;
  int pp = 1;
  int cp = 1;
  int ep = 1;
  int dp = 0;
  int zero = 0;             // ZeRO stage
  int64_t micro_batch = 0;  // rows (a generator's: rows that decode together); 0: by the module's own budget
  bool recompute = false;   // activations are recomputed in the backward pass
  bool offload = false;     // optimizer state and update on the host
  int virtual_stages = 1;   // stages of each of the pp ranks, which the schedule interleaves
  // Blocks of each of the pp · virtual_stages stages; empty: they cost about the same.
  std::vector<int64_t> stages = {};
  shape::ContextKind cp_kind = shape::ContextKind::kGather;  // what the ranks of cp exchange
  bool operator==(const Layout&) const = default;

  COLLIMATE_FIELDS(tp, pp, cp, ep, dp, zero, micro_batch, recompute, offload, virtual_stages, stages, cp_kind)
};

// A ResourceGroup is a set of devices and the models that sit on them. Groups may share devices; work that shares a
// device is serialised.
struct ResourceGroup {
  std::vector<int> devices;
  std::vector<std::string> models;
  bool operator==(const ResourceGroup&) const = default;

  COLLIMATE_FIELDS(devices, models)
};

enum class Residency { kDevice, kSwap };  // always on the device; loaded before use and off-loaded when others need it
constexpr auto words_of(Residency) { return base::Words<Residency, 2>{"residency", {"device", "swap"}}; }

// A Placement says where a graph runs. It is written by hand or by the planner, as YAML or JSON of one schema:
//   version: 1
//   devices: {count: 2, kind: cpu}
//   groups: {main: {devices: [0, 1], models: [policy, policy_trainer]}}  # or devices: 2, the first two left
//   layouts: {policy_trainer: {train: {dp: 2}}}
//   residency: {reference: swap}
//   hosts: {reward: 2}            # workers of a model in no group, default 1
//   staleness: 0                  # iterations that a rollout may run ahead of training
//   request: {cluster: 2xcpu}     # what a planner's file was asked for, which means nothing here
struct Placement {
  int devices = 1;
  std::string kind = "cpu";
  std::map<std::string, ResourceGroup> groups;
  std::map<std::string, std::map<std::string, Layout>> layouts;  // model → function → layout
  std::map<std::string, Residency> residency;
  std::map<std::string, int> hosts;
  int64_t staleness = 0;
  bool operator==(const Placement&) const = default;

  COLLIMATE_FIELDS(groups, layouts, residency, hosts, staleness)  // the text form has devices and kind in one mapping

  // Returns the group of a model, or null for a host model.
  const ResourceGroup* group_of(std::string_view model) const;
  Layout layout(std::string_view model, std::string_view function) const;
  bool swaps(const std::string& model) const;
};

nlohmann::json to_json(const Placement& placement);
std::string json_text(const Placement& placement);
std::string yaml_text(const Placement& placement);
// Reads either form. Throws InputError naming the key and `where` (a file name).
Placement parse_placement(std::string_view text, const std::string& where = "placement");

// Places all models with device functions on all devices, where they share time.
Placement flattening(const Graph& graph, int devices, std::string kind = "cpu");
// A Replica is one replica of a node's model: its ordered workers. Workers 0 … devices − 1 are devices; the workers
// of host models follow, in order of model name.
using Replica = std::vector<int>;
// Returns the replicas on which a node runs, deterministically. An iteration-granular node, a train node and a loop
// have exactly one.
std::vector<Replica> replicas(const Graph& graph, const Placement& placement, int node);
// Returns the replicas on which calls of a model's function run, whether or not a node of the graph calls it.
std::vector<Replica> replicas(const Graph& graph, const Placement& placement, const std::string& model,
                              const FunctionSpec& function);
// Returns all workers of a model, in order.
std::vector<int> workers_of(const Graph& graph, const Placement& placement, std::string_view model);
int worker_count(const Graph& graph, const Placement& placement);

// A Company is a set of models that a device holds together, and the first device that holds just these.
struct Company {
  int device = 0;
  std::set<std::string> models;
};
// Returns each company of a placement's devices once, in the order of their first devices. Their number depends on how
// differently groups share devices, not on how many devices there are.
std::vector<Company> companies(const Graph& graph, const Placement& placement);

// Checks a placement against a graph: every model is placed once, names are known, devices are in range, layouts divide
// the group's devices. Throws InputError with the numbers of a total that does not fit.
void validate(const Graph& graph, const Placement& placement);

}  // namespace collimate::graph
