#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collimate/base/fields.h"

namespace collimate::graph {

// A DeviceMemory says how much memory models take on a device while they are on it, by item. Models share one piece for
// all items of the same name, of which the largest size counts.
struct DeviceMemory {
  // This is the limit of each device. 0 means that nobody knows it; then of the models that take turns only those that
  // are used together are on a device at a time.
  int64_t budget_bytes = 0;
  std::map<int, std::map<std::string, std::map<std::string, int64_t>>> items;  // worker → model → item → bytes
  // These models read the weights of their link's source where the source is, when both are on one worker. A transfer
  // then moves nothing there and needs neither of them on the device.
  std::set<std::string> in_place = {};
  // These models keep nothing from one iteration to the next, so no save brings them to their device.
  std::set<std::string> stateless = {};
  bool operator==(const DeviceMemory&) const = default;

  // These return the bytes that these models take together, and the items that make them up.
  int64_t bytes(int worker, const std::vector<std::string>& models) const;
  std::map<std::string, int64_t> together(int worker, const std::vector<std::string>& models) const;

  COLLIMATE_FIELDS(budget_bytes, items, in_place, stateless)
};

}  // namespace collimate::graph
