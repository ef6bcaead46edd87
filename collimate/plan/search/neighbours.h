#pragma once

#include "collimate/plan/search/slots.h"

namespace collimate::plan {

// Placements from which a local search of many models begins: all of them together, and one or two of them on slices of
// their own in every size.
std::vector<Slots> first_slots(int models, int devices, int unit, const std::vector<int>& borders = {});
// Those one move away: a model to another slice, to all devices or to a slice of its own (half of the largest), two
// slices made one, a border moved by a unit.
std::vector<Slots> neighbours(const Slots& slots, int unit, const std::vector<int>& borders = {});

}  // namespace collimate::plan
