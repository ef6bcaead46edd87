#pragma once

#include "collimate/plan/search/slots.h"

namespace collimate::plan {

// Placements from which a local search of many models begins: all of them together; one or two of them
// apart from the others, or two of them apart from each other beside the others on all devices, in slices of every
// size.
std::vector<Slots> first_slots(int models, int devices, int unit, const std::vector<int>& borders = {});
// Gives the slots one move away: a model to another slice, to all devices or to a slice of its own (half of the
// largest), two slices made one, a border moved by a unit.
std::vector<Slots> neighbours(const Slots& slots, int unit, const std::vector<int>& borders = {});

}  // namespace collimate::plan
