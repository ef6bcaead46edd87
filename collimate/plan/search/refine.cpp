#include <algorithm>

#include "collimate/plan/search/found.h"
#include "collimate/plan/search/placements.h"

namespace collimate::plan {
namespace {

constexpr int64_t kRefineSteps = 1000;

// Moves `unit` devices from one slice to another, the first such move that makes the plan faster. Returns whether one
// did.
bool move_border(const Request& request, const Functions& functions, ChoiceTable& table, Found& found, int unit) {
  const size_t first = nested(found.slots) ? 1 : 0;
  for (size_t from = first; from < found.slots.size(); ++from)
    for (size_t to = first; to < found.slots.size(); ++to) {
      if (from == to || found.slots[from].count <= unit) continue;
      Slots moved = found.slots;
      moved[from].count -= unit;
      moved[to].count += unit;
      align(moved, first, request.cluster.borders());
      Assignment assignment(request, functions, table, moved);
      if (!assignment.feasible() || assignment.bound() >= found.seconds) continue;
      const Assigned assigned = assignment.best(found.seconds * (1 - 1e-9), kRefineSteps);
      if (!assigned.found()) continue;
      found = {found.subcluster, moved, assigned.choices, assigned.seconds, {}};
      return true;
    }
  return false;
}

}  // namespace

void refine(const Request& request, const Functions& functions, ChoiceTable& table, Found& found) {
  const int devices = devices_of(found.slots);
  int per_node = devices;
  for (const NodeGroup& group : request.cluster.groups) per_node = std::min(per_node, group.per_node);
  for (int unit = least_slice(request.cluster, devices) / 2; unit >= std::min(per_node, unit) && unit >= 1; unit /= 2) {
    if (unit < per_node && devices > 4 * per_node) break;
    while (move_border(request, functions, table, found, unit)) {
    }
  }
}

}  // namespace collimate::plan
