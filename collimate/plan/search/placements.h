#pragma once

#include "collimate/plan/layout/choices.h"
#include "collimate/plan/search/slots.h"

namespace collimate::plan {

// Returns the numbers of devices to try. With one kind, these are all devices and then fewer, which may be faster: the
// number of nodes (of a single node: devices) loses its last set bit until it is a power of two, as 7, 6 and 4 do, and
// is then halved for as long as that is faster with all models on all devices. With several kinds, only all devices are
// tried.
std::vector<int> device_counts(const Request& request, const Functions& functions, ChoiceTable& table);
// Returns the placements to look at or, for many models, those from which a local search begins: enumerate_slots() or
// first_slots() for each of device_counts(), from device 0 on.
std::vector<Slots> all_placements(const Request& request, const Functions& functions, ChoiceTable& table);
// Returns the devices of the smallest slice of these placements.
int least_slice(const Cluster& cluster, int devices);

}  // namespace collimate::plan
