#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collimate/base/fields.h"

namespace collimate::graph {

// The memory that models take of a device while they are on it, by item. Items of one name are one piece that models
// share, of which the largest size counts.
struct DeviceMemory {
  // The limit of each device. 0: nobody knows it; of models that take turns a device then has those alone that are used
  // together.
  int64_t budget_bytes = 0;
  std::map<int, std::map<std::string, std::map<std::string, int64_t>>> items;  // worker → model → item → bytes
  // Models that read the weights of their link's source where they are on one worker with it: a transfer moves nothing
  // there, and wants neither of them on the device.
  std::set<std::string> in_place = {};
  // Models that keep nothing from one iteration to the next: no save brings them to their device.
  std::set<std::string> stateless = {};
  bool operator==(const DeviceMemory&) const = default;

  // The bytes of these models together, and the items that they are made of.
  int64_t bytes(int worker, const std::vector<std::string>& models) const;
  std::map<std::string, int64_t> together(int worker, const std::vector<std::string>& models) const;

  COLLIMATE_FIELDS(budget_bytes, items, in_place, stateless)
};

}  // namespace collimate::graph
