#pragma once

#include <string>
#include <vector>

#include "collimate/plan/inputs/gpu.h"

namespace collimate::plan {

// Nodes of one kind.
struct NodeGroup {
  int nodes = 1;
  int per_node = 8;
  Gpu gpu;
  int devices() const { return nodes * per_node; }
  bool operator==(const NodeGroup&) const = default;
};

// The devices a plan may use, numbered group by group, node by node.
struct Cluster {
  std::vector<NodeGroup> groups;
  int devices() const;
  // The group of a device; CHECKs the range.
  const NodeGroup& group_of(int device) const;
  bool operator==(const Cluster&) const = default;
};

// `16x8xA100-80` (nodes × devices × kind), `8xH100` (full nodes as sold, else one node), `H200` (one), lists joined by
// `+`, each with an optional network speed per node `@400Gb`. InputError with the nearest valid choice.
Cluster parse_cluster(const std::string& text);
std::string cluster_text(const Cluster& cluster);
// Whether the network's speed is another than that of the device's own entry, as after `@400Gb`.
bool network_is_given(const Gpu& gpu);
// So many devices of a kind, in nodes as sold.
Cluster cluster_of(const Gpu& gpu, int devices);

}  // namespace collimate::plan
