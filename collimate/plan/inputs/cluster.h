#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/plan/inputs/device_kind.h"

namespace collimate::plan {

// A NodeGroup is some equal nodes with devices of one kind.
struct NodeGroup {
  int nodes = 1;
  int per_node = 8;
  DeviceKind gpu;
  int devices() const { return nodes * per_node; }
  bool operator==(const NodeGroup&) const = default;
};

// A DeviceRange is `count` devices that are neighbours by their numbers.
struct DeviceRange {
  int first = 0, count = 0;
};

// Kinds decide, beside the number of devices, how fast devices are in step.
struct Kinds {
  std::vector<int> groups;  // indices in the cluster, ascending
  int per_node = 0;         // devices of a node
  auto operator<=>(const Kinds&) const = default;
};

// A Cluster is the devices that a plan may use, numbered group by group, node by node.
struct Cluster {
  std::vector<NodeGroup> groups;
  int devices() const;
  // Returns the group of a device; CHECKs the range.
  int group_at(int device) const;
  const NodeGroup& group_of(int device) const { return base::at(groups, group_at(device)); }
  // Returns the devices with which another group begins.
  std::vector<int> borders() const;
  // Returns the kinds of devices in the order of their ranks. `per_node` is that of their group or, for several groups,
  // the largest number of neighbours that always lie on one node, counted from the first device on.
  Kinds kinds(DeviceRange devices) const;
  Kinds kinds(const std::vector<int>& devices) const;
  // Returns what devices of these kinds can count on in step: the numbers of the kind or, for several kinds, those of
  // in_step().
  DeviceKind gpu(const Kinds& kinds) const;
  bool has_cpus() const { return !groups.empty() && groups.front().gpu.cpu; }  // then it has nothing else
  bool operator==(const Cluster&) const = default;
};

// Reads `16x8xA100-80` (nodes × devices × kind), `8xH100` (one node, or full nodes as sold), `H200` (one device), or
// a list joined by `+`, each part with an optional network speed per node, `@400Gb`. Neighbours of one kind are one:
// `4xA100+4xA100` is `8xA100`, `1x4xA100+1x4xA100` is `2x4xA100`. Throws InputError with the nearest valid choice.
Cluster parse_cluster(const std::string& text, const DeviceKinds& kinds = {});
std::string cluster_text(const Cluster& cluster);
// Writes the number of devices: "8", or "8 A100-80 + 4 H100-80" where the cluster has several kinds.
std::string count_text(const Cluster& cluster, const std::vector<int>& devices);
// Returns the name of a device's kind, "A100-80"; "" where the cluster has one kind.
std::string kind_text(const Cluster& cluster, int device);
constexpr int kMaxDevices = 1 << 17;  // of a cluster
// Makes a cluster of so many devices of a kind, in nodes as sold or in a smaller one. Throws InputError where nodes
// would not be full.
Cluster cluster_of(const DeviceKind& gpu, int devices);
// Returns the cluster's groups in the same proportion with so many devices in all, in nodes as they are or as sold;
// nothing where a group would not have whole nodes.
std::optional<Cluster> with_devices(const Cluster& cluster, int devices);
// Makes one group of neighbouring groups with the same kind and size of nodes.
void join_groups(Cluster& cluster);

}  // namespace collimate::plan
