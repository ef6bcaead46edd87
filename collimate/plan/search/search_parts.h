#pragma once

#include "collimate/plan/plan.h"
#include "collimate/plan/search/assignment.h"

// What the search is made of beside branch and bound; not for others.
namespace collimate::plan {

// A placement with its choices.
struct Found {
  Slots slots;
  std::vector<const Choice*> choices;
  double seconds = 0;
};

// All devices, then fewer of them, which may be the faster: nodes (or devices of the only node) less the last bits of
// their number, as 7, 6 and 4; then half as many for as long as all models on all of them are faster there.
std::vector<int> device_counts(const Request& request, const Functions& functions, ChoiceTable& table);
// The placements that are looked at: enumerate_slots for each of these counts, from device 0 on.
std::vector<Slots> all_placements(const Request& request, const Functions& functions, ChoiceTable& table);
// Moves borders between slices by ever fewer devices, down to a node, while that helps.
void refine(const Request& request, const Functions& functions, ChoiceTable& table, Found& found);
// The file that the runtime reads.
graph::Placement placement_of(const Request& request, const Functions& functions, const Found& found);
// Runs the plan in the runtime's schedule: its period, and when functions begin and end.
void settle(const Request& request, Plan& plan);
// What is too large, for the placement of all models on all devices at their leanest.
std::string why_nothing_fits(const Request& request, const Functions& functions, ChoiceTable& table);

}  // namespace collimate::plan
