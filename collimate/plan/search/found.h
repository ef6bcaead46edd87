#pragma once

#include <set>
#include <string>
#include <vector>

#include "collimate/plan/search/assignment.h"
#include "collimate/plan/search/subclusters.h"

namespace collimate::plan {

// A placement on a subcluster with its choices.
struct Found {
  size_t subcluster = 0;  // of the search's
  Slots slots;
  std::vector<const Choice*> choices;
  double seconds = 0;
  std::set<std::string> in_turn = {};  // models that take turns on their devices (residency: swap)
};

// Moves borders between slices by ever fewer devices, down to a node, while that helps.
void refine(const Request& request, const Functions& functions, ChoiceTable& table, Found& found);
// The file that the runtime reads, with the devices of the whole cluster.
graph::Placement placement_of(const Subcluster& subcluster, const Functions& functions, const Found& found);

}  // namespace collimate::plan
