#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collimate/plan/inputs/cluster.h"

namespace collimate::plan {

// A Slot is a run of neighbouring devices with the models (by index) that share them.
struct Slot {
  std::vector<int> models;
  int first = 0;
  int count = 0;
  DeviceRange range() const { return {first, count}; }
};
// Slots are one placement of all models: disjoint slices that together cover the devices and, before them, a slot on
// all devices where some models are on all of them.
using Slots = std::vector<Slot>;

// Returns every placement of `models` models on `devices` devices once: some models are on all devices, and the others,
// as a set partition, on disjoint slices that tile the devices. Sizes are multiples of `unit`; the largest slice takes
// what is left. Flattening, interleaving, separation, split, standalone and nested forms are all among them. With
// `borders`, the devices at which another kind begins, slices end there or a multiple of `unit` behind them, and come
// in every order that decides which slices have which kinds.
std::vector<Slots> enumerate_slots(int models, int devices, int unit, const std::vector<int>& borders = {});

// Returns the size of the smallest slice, a power of two that keeps the number of placements small: it allows at most
// 16 slices, or 8 with several kinds, as their order counts.
int slot_unit(int devices, bool several_kinds = false);
// Returns how many devices a placement covers, from device 0 on.
int devices_of(const Slots& slots);

// Sets where the slices from index `first_slice` on begin, so that they tile the cluster from device 0. Neighbouring
// slices in one kind change places so that tensor-parallel ranks do not straddle nodes.
void align(Slots& slots, size_t first_slice, const std::vector<int>& borders = {});
// Returns whether the first slot lies on all devices and the others divide them.
bool nested(const Slots& slots);
const Slot& slot_of(const Slots& slots, int model);
// Returns the devices of every cell. The devices of one cell belong to the same slots.
std::vector<DeviceRange> cells(const Slots& slots);
// Returns the cells that a slot covers, as bits.
uint32_t cells_of(const Slots& slots, const Slot& slot);

// Writes "policy+trainer 8 | reference 4 | reward 4".
std::string slots_text(const Slots& slots, const std::vector<std::string>& names);
// Writes slots without their sizes, as placements of one form differ in sizes only.
std::string form_text(const Slots& slots, const std::vector<std::string>& names);

}  // namespace collimate::plan
