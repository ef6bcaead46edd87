#include "collimate/plan/search/subclusters.h"

#include <bit>

#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

constexpr size_t kMostKinds = 4;

// Returns a group with all of its nodes (of a single node: devices), or `rounded` down to a power of two of them.
NodeGroup part_of(const NodeGroup& group, bool rounded) {
  NodeGroup part = group;
  int& units = group.nodes > 1 ? part.nodes : part.per_node;
  if (rounded) units = static_cast<int>(std::bit_floor(static_cast<unsigned>(units)));
  return part;
}

// Returns the subcluster of the `chosen` groups, which are given as bits.
Subcluster subcluster(const Request& request, uint32_t chosen, bool rounded) {
  Subcluster made{request, {}};
  made.request.cluster.groups.clear();
  int first = 0;
  for (size_t g = 0; g < request.cluster.groups.size(); ++g) {
    const NodeGroup& group = request.cluster.groups[g];
    if ((chosen >> g & 1U) != 0) {
      made.request.cluster.groups.push_back(part_of(group, rounded));
      const int count = made.request.cluster.groups.back().devices();
      for (int device = first; device < first + count; ++device) made.devices.push_back(device);
    }
    first += group.devices();
  }
  return made;
}

}  // namespace

std::vector<Subcluster> subclusters(const Request& request) {
  const size_t kinds = request.cluster.groups.size();
  if (kinds > kMostKinds)
    throw base::InputError(base::expectation("cluster", fmt::format("at most {} kinds of device", kMostKinds),
                                             fmt::format("'{}'", cluster_text(request.cluster)), "fewer of them"));
  std::vector<Subcluster> all;
  for (uint32_t chosen = (1U << kinds) - 1; chosen > 0; --chosen) {
    all.push_back(subcluster(request, chosen, false));
    if (std::popcount(chosen) == 1) continue;
    Subcluster rounded = subcluster(request, chosen, true);
    if (rounded.devices.size() < all.back().devices.size()) all.push_back(std::move(rounded));
  }
  return all;
}

}  // namespace collimate::plan
