#include "collimate/plan/inputs/cluster.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

constexpr int kUsualNetwork = 400;  // Gb/s of a node

[[noreturn]] void fail(const std::string& expected, const std::string& got, const std::string& remedy) {
  throw base::InputError(base::expectation("cluster", expected, "'" + got + "'", remedy));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<int> number(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Guesses which part was meant by a text that is none: the text's numbers, within limits and as whole nodes, with the
// nearest kind.
std::string nearest_part(const std::string& whole, const DeviceKinds& kinds) {
  std::vector<int> numbers;
  std::string kind;
  for (const std::string& word : split(whole.substr(0, whole.find('@')), 'x')) {
    const std::string digits = word.substr(0, word.find_first_not_of("-0123456789"));
    if (!digits.empty())
      numbers.push_back(static_cast<int>(std::clamp(std::abs(std::atof(digits.c_str())), 1.0, double(kMaxDevices))));
    kind.append(kind.empty() || digits.size() == word.size() ? "" : "x").append(word.substr(digits.size()));
  }
  const DeviceKind gpu = kind.empty() ? kinds.find("A100-80") : kinds.nearest(kind);
  if (numbers.empty()) return gpu.name;
  int devices = numbers.back();
  if (numbers.size() > 1)
    return fmt::format("{}x{}x{}", std::min(numbers[numbers.size() - 2], kMaxDevices / devices), devices, gpu.name);
  if (devices > gpu.per_node) devices = (devices + gpu.per_node - 1) / gpu.per_node * gpu.per_node;
  return fmt::format("{}x{}", std::min(devices, kMaxDevices), gpu.name);
}

// Guesses which list was meant by one whose parts are joined by commas.
std::string nearest_list(std::string text, const DeviceKinds& kinds) {
  std::replace(text.begin(), text.end(), ',', '+');
  std::string list;
  for (const std::string& part : split(text, '+'))
    if (!part.empty()) list.append(list.empty() ? "" : "+").append(nearest_part(part, kinds));
  return list.empty() ? "16x8xA100-80" : list;
}

int count(const std::string& part, const std::string& whole, const DeviceKinds& kinds) {
  const std::optional<int> value = number(part);
  if (!value || *value < 1 || *value > kMaxDevices)
    fail(fmt::format("a number of nodes or devices from 1 to {}", kMaxDevices), whole, nearest_part(whole, kinds));
  return *value;
}

// Reads "400Gb" or "50GB" per node and second. Returns bytes per second.
double network_bytes(const std::string& text, const std::string& whole, const DeviceKinds& kinds) {
  const bool bits = text.ends_with("Gb"), bytes = text.ends_with("GB");
  const std::optional<int> value = text.size() > 2 ? number(text.substr(0, text.size() - 2)) : std::nullopt;
  const std::optional<int> said = bits || bytes ? value : number(text);
  if ((!bits && !bytes) || !value || *value < 1)
    fail("a network speed per node such as 400Gb or 50GB", whole,
         fmt::format("{}@{}Gb", nearest_part(whole, kinds), said && *said > 0 ? *said : kUsualNetwork));
  return *value * (bits ? 1e9 / 8 : 1e9);
}

DeviceKind kind_of(const std::string& kind, const std::string& whole, const DeviceKinds& kinds) {
  if (const std::optional<DeviceKind> known = kinds.named(kind); known && !number(kind)) return *known;
  const bool missing = kind.empty() || number(kind);
  fail(fmt::format("NODESxDEVICESxKIND with a kind of {}", fmt::join(kinds.names(), ", ")), whole,
       nearest_part(whole, kinds) + (missing ? ", or 2xcpu for processors" : ""));
}

// A ClusterPart is one part of a cluster's text.
struct ClusterPart {
  int nodes = 0;    // 0: as sold
  int devices = 1;  // of a node; in nodes as sold: in all
  DeviceKind gpu = {};
  double network = 0;  // bytes per second of a node; 0: the kind's own
};

ClusterPart parse_part(const std::string& whole, const DeviceKinds& kinds) {
  const std::vector<std::string> halves = split(whole, '@');
  std::vector<std::string> parts = split(halves[0], 'x');
  size_t numbers = 0;
  while (numbers + 1 < parts.size() && number(parts[numbers])) ++numbers;
  std::string kind = parts[numbers];
  for (size_t i = numbers + 1; i < parts.size(); ++i) kind += "x" + parts[i];
  if (numbers > 2 || halves.size() > 2) fail("NODESxDEVICESxKIND", whole, nearest_part(whole, kinds));
  ClusterPart part{0, 1, kind_of(kind, whole, kinds)};
  if (numbers > 0) part.devices = count(parts[numbers - 1], whole, kinds);
  if (numbers == 2) part.nodes = count(parts[0], whole, kinds);
  if (static_cast<int64_t>(part.nodes) * part.devices > kMaxDevices)
    fail(fmt::format("at most {} devices", kMaxDevices), whole, nearest_part(whole, kinds));
  if (halves.size() == 2) part.network = network_bytes(halves[1], whole, kinds);
  return part;
}

// Joins `next` into `part` where both are numbers of devices of one kind that make one node or full nodes as sold.
// Returns whether it did.
bool join_parts(ClusterPart& part, const ClusterPart& next) {
  const int devices = part.devices + next.devices, sold = part.gpu.per_node;
  if (part.nodes != 0 || next.nodes != 0 || part.gpu != next.gpu || part.network != next.network) return false;
  if (devices > sold && devices % sold != 0) return false;
  part.devices = devices;
  return true;
}

NodeGroup group_of_part(const ClusterPart& part) {
  NodeGroup group{part.nodes, part.devices, part.gpu};
  if (part.nodes == 0) group = cluster_of(part.gpu, part.devices).groups[0];
  const double network = part.network / group.per_node;
  group.gpu.network_given = network > 0 && network != part.gpu.network_bytes_per_second;
  if (group.gpu.network_given) group.gpu.network_bytes_per_second = network;
  return group;
}

// Adds a group whose ranks follow `before` ranks of other groups.
void add_group(Kinds& kinds, int group, int per_node, int before) {
  kinds.per_node = std::gcd(kinds.per_node, std::gcd(per_node, before));
  const auto at = std::lower_bound(kinds.groups.begin(), kinds.groups.end(), group);
  if (at == kinds.groups.end() || *at != group) kinds.groups.insert(at, group);
}

}  // namespace

int Cluster::devices() const {
  int total = 0;
  for (const NodeGroup& group : groups) total += group.devices();
  return total;
}

int Cluster::group_at(int device) const {
  for (size_t g = 0; g < groups.size(); ++g) {
    if (device < groups[g].devices()) return static_cast<int>(g);
    device -= groups[g].devices();
  }
  COLLIMATE_CHECK(false, "device outside the cluster");
}

std::vector<int> Cluster::borders() const {
  std::vector<int> begins;
  int begin = 0;
  for (const NodeGroup& group : groups) {
    if (begin > 0) begins.push_back(begin);
    begin += group.devices();
  }
  return begins;
}

Kinds Cluster::kinds(DeviceRange devices) const {
  Kinds made;
  int begin = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const int end = begin + groups[g].devices();
    if (devices.first < end && begin < devices.first + devices.count)
      add_group(made, static_cast<int>(g), groups[g].per_node, std::max(begin - devices.first, 0));
    begin = end;
  }
  return made;
}

Kinds Cluster::kinds(const std::vector<int>& devices) const {
  Kinds made;
  int last = -1;
  for (size_t i = 0; i < devices.size(); ++i) {
    const int group = group_at(devices[i]);
    if (group != last) add_group(made, group, base::at(groups, group).per_node, static_cast<int>(i));
    last = group;
  }
  return made;
}

DeviceKind Cluster::gpu(const Kinds& kinds) const {
  COLLIMATE_CHECK(!kinds.groups.empty(), "the kind of no devices");
  DeviceKind made = base::at(groups, kinds.groups.front()).gpu;
  for (size_t i = 1; i < kinds.groups.size(); ++i) made = in_step(made, base::at(groups, kinds.groups[i]).gpu);
  return made;
}

void join_groups(Cluster& cluster) {
  std::vector<NodeGroup> joined;
  for (const NodeGroup& group : cluster.groups) {
    if (!joined.empty() && joined.back().gpu == group.gpu && joined.back().per_node == group.per_node)
      joined.back().nodes += group.nodes;
    else
      joined.push_back(group);
  }
  cluster.groups = joined;
}

Cluster parse_cluster(const std::string& text, const DeviceKinds& kinds) {
  if (text.find(',') != std::string::npos) fail("NODESxDEVICESxKIND, joined by +", text, nearest_list(text, kinds));
  std::vector<ClusterPart> parts;
  for (const std::string& part : split(text, '+')) {
    if (part.empty()) fail("NODESxDEVICESxKIND, joined by +", text, "16x8xA100-80");
    const ClusterPart next = parse_part(part, kinds);
    if (parts.empty() || !join_parts(parts.back(), next)) parts.push_back(next);
  }
  Cluster cluster;
  for (const ClusterPart& part : parts) cluster.groups.push_back(group_of_part(part));
  join_groups(cluster);
  return cluster;
}

std::string cluster_text(const Cluster& cluster) {
  std::string text;
  for (const NodeGroup& group : cluster.groups) {
    text += fmt::format("{}{}x{}x{}", text.empty() ? "" : "+", group.nodes, group.per_node, group.gpu.name);
    if (group.gpu.network_given)
      text += fmt::format("@{:.0f}Gb", group.gpu.network_bytes_per_second * group.per_node * 8 / 1e9);
  }
  return text;
}

Cluster cluster_of(const DeviceKind& gpu, int devices) {
  if (devices <= gpu.per_node) return {{{1, devices, gpu}}};
  if (devices % gpu.per_node != 0)
    throw base::InputError(base::expectation("cluster", fmt::format("whole nodes of {} {}", gpu.per_node, gpu.name),
                                             fmt::format("{} devices", devices),
                                             fmt::format("{0}x{1}x{2}, or 1x{3}x{2} for one node of {3}",
                                                         devices / gpu.per_node + 1, gpu.per_node, gpu.name, devices)));
  return {{{devices / gpu.per_node, gpu.per_node, gpu}}};
}

std::optional<Cluster> with_devices(const Cluster& cluster, int devices) {
  Cluster made = cluster;
  const int64_t all = cluster.devices();
  for (NodeGroup& group : made.groups) {
    const int64_t share = static_cast<int64_t>(group.devices()) * devices;
    const int node = group.nodes > 1 ? group.per_node : std::max(group.per_node, group.gpu.per_node);
    const int part = static_cast<int>(share / all);
    if (share % all != 0 || part < 1 || (part > node && part % node != 0)) return std::nullopt;
    group.per_node = std::min(part, node);
    group.nodes = part / group.per_node;
  }
  return made;
}

std::string count_text(const Cluster& cluster, const std::vector<int>& devices) {
  if (cluster.groups.size() == 1) return std::to_string(devices.size());
  std::map<int, int> counts;  // by group
  for (const int device : devices) ++counts[cluster.group_at(device)];
  std::string text;
  for (const auto& [group, devices_of_it] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : " + ", devices_of_it, base::at(cluster.groups, group).gpu.name);
  return text;
}

std::string kind_text(const Cluster& cluster, int device) {
  return cluster.groups.size() == 1 ? "" : cluster.group_of(device).gpu.name;
}

}  // namespace collimate::plan
