#pragma once

#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/plan/inputs/device_kind.h"

namespace collimate::plan {

// Nodes of one kind.
struct NodeGroup {
  int nodes = 1;
  int per_node = 8;
  DeviceKind gpu;
  int devices() const { return nodes * per_node; }
  bool operator==(const NodeGroup&) const = default;
};

// Neighbours by their numbers.
struct DeviceRange {
  int first = 0, count = 0;
};

// Kinds decide how fast devices are in step, beside how many they are.
struct Kinds {
  std::vector<int> groups;  // of the cluster, ascending
  int per_node = 0;         // of a node
  auto operator<=>(const Kinds&) const = default;
};

// The devices a plan may use, numbered group by group, node by node.
struct Cluster {
  std::vector<NodeGroup> groups;
  int devices() const;
  // The group of a device; CHECKs the range.
  int group_at(int device) const;
  const NodeGroup& group_of(int device) const { return base::at(groups, group_at(device)); }
  // The devices with which another group begins.
  std::vector<int> borders() const;
  // Gives the kinds of devices in the order of their ranks. Those of one group have its nodes; those of several count
  // on no larger ones than keep so many neighbours, from the first on, on one node.
  Kinds kinds(DeviceRange devices) const;
  Kinds kinds(const std::vector<int>& devices) const;
  // Gives what they can count on: exactly the kind, of several kinds the least of each number.
  DeviceKind gpu(const Kinds& kinds) const;
  bool has_cpus() const { return !groups.empty() && groups.front().gpu.cpu; }  // then it has nothing else
  bool operator==(const Cluster&) const = default;
};

// `16x8xA100-80` (nodes × devices × kind), `8xH100` (full nodes as sold, else one node), `H200` (one), lists joined by
// `+`, each with an optional network speed per node `@400Gb`. Neighbours of one kind are one: `4xA100+4xA100` is
// `8xA100`, `1x4xA100+1x4xA100` is `2x4xA100`. InputError with the nearest valid choice.
Cluster parse_cluster(const std::string& text, const DeviceKinds& kinds = {});
std::string cluster_text(const Cluster& cluster);
// "8"; where the cluster has several kinds "8 A100-80 + 4 H100-80".
std::string count_text(const Cluster& cluster, const std::vector<int>& devices);
// "A100-80"; "" where the cluster has one kind.
std::string kind_text(const Cluster& cluster, int device);
constexpr int kMaxDevices = 1 << 17;  // of a cluster
// Makes a cluster of so many devices of a kind, in nodes as sold.
Cluster cluster_of(const DeviceKind& gpu, int devices);
// Gives the same groups in the same proportion with so many devices in all, in nodes as they are or as sold; nothing
// where a group would not have whole nodes.
std::optional<Cluster> with_devices(const Cluster& cluster, int devices);
// Makes one group of neighbours with the same kind and size of nodes.
void join_groups(Cluster& cluster);

}  // namespace collimate::plan
