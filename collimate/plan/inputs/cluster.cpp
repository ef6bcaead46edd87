#include "collimate/plan/inputs/cluster.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

constexpr int kMaxDevices = 1 << 17;

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

int count(const std::string& part, const std::string& whole) {
  const std::optional<int> value = number(part);
  if (!value || *value < 1 || *value > kMaxDevices)
    fail(fmt::format("a number of nodes or devices from 1 to {}", kMaxDevices), whole, "16x8xA100-80");
  return *value;
}

// "400Gb" or "50GB", per node and second.
double network_bytes(const std::string& text, const std::string& whole) {
  const bool bits = text.ends_with("Gb"), bytes = text.ends_with("GB");
  const std::optional<int> value = text.size() > 2 ? number(text.substr(0, text.size() - 2)) : std::nullopt;
  if ((!bits && !bytes) || !value || *value < 1)
    fail("a network speed per node such as 400Gb or 50GB", whole, "@400Gb");
  return *value * (bits ? 1e9 / 8 : 1e9);
}

NodeGroup parse_group(const std::string& whole) {
  const std::vector<std::string> halves = split(whole, '@');
  std::vector<std::string> parts = split(halves[0], 'x');
  size_t numbers = 0;
  while (numbers + 1 < parts.size() && number(parts[numbers])) ++numbers;
  std::string kind = parts[numbers];
  for (size_t i = numbers + 1; i < parts.size(); ++i) kind += "x" + parts[i];
  if (numbers > 2 || halves.size() > 2) fail("NODESxDEVICESxKIND", whole, "16x8xA100-80");
  NodeGroup group{1, 1, find_gpu(kind)};
  if (numbers == 2) {
    group.nodes = count(parts[0], whole);
    group.per_node = count(parts[1], whole);
  } else if (numbers == 1) {
    group = cluster_of(group.gpu, count(parts[0], whole)).groups[0];
  }
  if (static_cast<int64_t>(group.nodes) * group.per_node > kMaxDevices)
    fail(fmt::format("at most {} devices", kMaxDevices), whole, "fewer nodes");
  if (halves.size() == 2) group.gpu.network_bytes_per_second = network_bytes(halves[1], whole) / group.per_node;
  return group;
}

}  // namespace

int Cluster::devices() const {
  int total = 0;
  for (const NodeGroup& group : groups) total += group.devices();
  return total;
}

const NodeGroup& Cluster::group_of(int device) const {
  for (const NodeGroup& group : groups) {
    if (device < group.devices()) return group;
    device -= group.devices();
  }
  COLLIMATE_CHECK(false, "device outside the cluster");
}

Cluster parse_cluster(const std::string& text) {
  Cluster cluster;
  for (const std::string& part : split(text, '+')) {
    if (part.empty()) fail("NODESxDEVICESxKIND, joined by +", text, "16x8xA100-80");
    cluster.groups.push_back(parse_group(part));
  }
  return cluster;
}

bool network_is_given(const Gpu& gpu) {
  return gpu.network_bytes_per_second != find_gpu(gpu.name).network_bytes_per_second;
}

std::string cluster_text(const Cluster& cluster) {
  std::string text;
  for (const NodeGroup& group : cluster.groups) {
    text += fmt::format("{}{}x{}x{}", text.empty() ? "" : "+", group.nodes, group.per_node, group.gpu.name);
    if (network_is_given(group.gpu))
      text += fmt::format("@{:.0f}Gb", group.gpu.network_bytes_per_second * group.per_node * 8 / 1e9);
  }
  return text;
}

Cluster cluster_of(const Gpu& gpu, int devices) {
  if (devices <= gpu.per_node) return {{{1, devices, gpu}}};
  if (devices % gpu.per_node != 0)
    throw base::InputError(base::expectation("cluster", fmt::format("whole nodes of {} {}", gpu.per_node, gpu.name),
                                             fmt::format("{} devices", devices),
                                             fmt::format("{0}x{1}x{2}, or 1x{3}x{2} for one node of {3}",
                                                         devices / gpu.per_node + 1, gpu.per_node, gpu.name, devices)));
  return {{{devices / gpu.per_node, gpu.per_node, gpu}}};
}

}  // namespace collimate::plan
