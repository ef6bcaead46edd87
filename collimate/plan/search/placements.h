#pragma once

#include "collimate/plan/layout/choices.h"
#include "collimate/plan/search/slots.h"

namespace collimate::plan {

// Gives all devices of one kind, then fewer of them, which may be the faster: nodes (or devices of the only node) less
// the last bits of their number, as 7, 6 and 4; then half as many for as long as all models on all of them are faster
// there. Of several kinds all.
std::vector<int> device_counts(const Request& request, const Functions& functions, ChoiceTable& table);
// The placements that are looked at, or of many models those to begin from: enumerate_slots or first_slots for each of
// these counts, from device 0 on.
std::vector<Slots> all_placements(const Request& request, const Functions& functions, ChoiceTable& table);
// The least slice of these placements.
int least_slice(const Cluster& cluster, int devices);

}  // namespace collimate::plan
