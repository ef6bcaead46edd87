#pragma once

#include <set>
#include <string>
#include <vector>

#include "collimate/plan/search/assignment.h"
#include "collimate/plan/search/subclusters.h"

namespace collimate::plan {

// Found is a placement on a subcluster with a choice for every function.
struct Found {
  size_t subcluster = 0;  // index among those of the search
  Slots slots;
  std::vector<const Choice*> choices;
  double seconds = 0;
  std::set<std::string> in_turn = {};  // models that take turns on their devices (residency: swap)
};

// Moves borders between slices while that makes the plan faster, by ever fewer devices: down to one, or down to a node
// where the placement has more than four nodes' devices.
void refine(const Request& request, const Functions& functions, ChoiceTable& table, Found& found);
// Returns the placement that the runtime reads, with the device numbers of the whole cluster.
graph::Placement placement_of(const Subcluster& subcluster, const Functions& functions, const Found& found);

}  // namespace collimate::plan
