#pragma once

#include "collimate/plan/search/slots.h"

namespace collimate::plan {

// Returns placements from which a local search over many models begins: all models together; one or two of them apart
// from the others; and two of them apart from each other beside the others, which are on all devices. Slices come in
// every size.
std::vector<Slots> first_slots(int models, int devices, int unit, const std::vector<int>& borders = {});
// Returns the placements one move away from `slots`. A move puts a model into another slice, onto all devices or into a
// slice of its own (half of the largest), joins two slices, or shifts a border by a unit.
std::vector<Slots> neighbours(const Slots& slots, int unit, const std::vector<int>& borders = {});

}  // namespace collimate::plan
