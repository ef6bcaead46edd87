#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collimate/plan/inputs/cluster.h"

namespace collimate::plan {

// Contiguous devices and the models (by index) that share them.
struct Slot {
  std::vector<int> models;
  int first = 0;
  int count = 0;
  DeviceRange range() const { return {first, count}; }
};
// One placement of all models: slots that overlap are those on all devices and those that share the devices out.
using Slots = std::vector<Slot>;

// Every placement of `models` models on `devices` devices: some models on all devices, a set partition of the others on
// disjoint slices that tile them, slice sizes in multiples of `unit`; what is left goes to the largest. So flattening,
// interleaving, separation, split, standalone and nested forms are all among them. Each once.
// With `borders`, devices at which another kind begins, slices end there or so many units behind, and come in every
// order that decides which of them have which kinds.
std::vector<Slots> enumerate_slots(int models, int devices, int unit, const std::vector<int>& borders = {});

// The least slice, a power of two, that keeps the number of placements small: at most 16 of them, or where their order
// counts 8.
int slot_unit(int devices, bool several_kinds = false);
// Counts the devices that a placement covers, from device 0 on.
int devices_of(const Slots& slots);

// Gives the slices from `first_slice` on their first devices, so that they tile the cluster from device 0; neighbours
// in one kind change places so that tensor-parallel ranks do not straddle nodes.
void align(Slots& slots, size_t first_slice, const std::vector<int>& borders = {});
// Whether the first slot lies on all devices and the others share them out.
bool nested(const Slots& slots);
const Slot& slot_of(const Slots& slots, int model);
// The devices of every cell: those of one cell belong to the same slots.
std::vector<DeviceRange> cells(const Slots& slots);
// The cells that a slot covers, as bits.
uint32_t cells_of(const Slots& slots, const Slot& slot);

// "policy+trainer 8 | reference 4 | reward 4".
std::string slots_text(const Slots& slots, const std::vector<std::string>& names);
// Leaves the sizes out: placements of one form differ in sizes only.
std::string form_text(const Slots& slots, const std::vector<std::string>& names);

}  // namespace collimate::plan
