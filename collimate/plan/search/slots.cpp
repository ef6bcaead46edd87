#include "collimate/plan/search/slots.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

constexpr int kMostSlices = 16;

using Partition = std::vector<std::vector<int>>;

// Set partitions of models[at…], each block begun by its smallest member; `chosen` holds the blocks so far.
void partitions(const std::vector<int>& models, size_t at, Partition& chosen, std::vector<Partition>& out) {
  if (at == models.size()) {
    out.push_back(chosen);
    return;
  }
  for (size_t block = 0; block < chosen.size(); ++block) {
    chosen[block].push_back(models[at]);
    partitions(models, at + 1, chosen, out);
    chosen[block].pop_back();
  }
  chosen.push_back({models[at]});
  partitions(models, at + 1, chosen, out);
  chosen.pop_back();
}

// Ordered sizes in units that add up to `left`.
void compositions(int left, size_t parts, std::vector<int>& chosen, std::vector<std::vector<int>>& out) {
  if (parts == 1) {
    chosen.push_back(left);
    out.push_back(chosen);
    chosen.pop_back();
    return;
  }
  for (int size = 1; size + static_cast<int>(parts) - 1 <= left; ++size) {
    chosen.push_back(size);
    compositions(left - size, parts - 1, chosen, out);
    chosen.pop_back();
  }
}

int largest_power_within(int count) { return count & -count; }

}  // namespace

// A slice whose size is a multiple of a larger power of two begins earlier: tensor-parallel ranks do not straddle
// nodes.
void align(Slots& slots, size_t first_slice) {
  std::stable_sort(
      slots.begin() + static_cast<std::ptrdiff_t>(first_slice), slots.end(),
      [](const Slot& a, const Slot& b) { return largest_power_within(a.count) > largest_power_within(b.count); });
  int first = 0;
  for (size_t i = first_slice; i < slots.size(); ++i) {
    slots[i].first = first;
    first += slots[i].count;
  }
}

namespace {

size_t largest_of(const std::vector<int>& counts) {
  return static_cast<size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

void add_sizes(const std::vector<int>& shared, const Partition& partition, int devices, int unit,
               std::vector<Slots>& out) {
  if (partition.empty()) return out.push_back({{shared, 0, devices}});
  if (partition.size() == 1) return;  // one slice is all devices: the placement in which all share them
  if (static_cast<int>(partition.size()) > devices / unit) return;
  std::vector<std::vector<int>> sizes;
  std::vector<int> chosen;
  compositions(devices / unit, partition.size(), chosen, sizes);
  for (const std::vector<int>& counts : sizes) {
    Slots slots;
    if (!shared.empty()) slots.push_back({shared, 0, devices});
    for (size_t i = 0; i < partition.size(); ++i) slots.push_back({partition[i], 0, counts[i] * unit});
    slots[slots.size() - counts.size() + largest_of(counts)].count += devices % unit;
    align(slots, shared.empty() ? 0 : 1);
    out.push_back(std::move(slots));
  }
}

std::string models_text(const Slot& slot, const std::vector<std::string>& names) {
  std::vector<std::string> models;
  for (const int model : slot.models) models.push_back(names[static_cast<size_t>(model)]);
  return fmt::format("{}", fmt::join(models, "+"));
}

}  // namespace

std::vector<Slots> enumerate_slots(int models, int devices, int unit) {
  std::vector<Slots> all;
  for (int mask = 0; mask < 1 << models; ++mask) {
    std::vector<int> shared, others;
    for (int model = 0; model < models; ++model) ((mask >> model & 1) != 0 ? shared : others).push_back(model);
    std::vector<Partition> found;
    Partition chosen;
    partitions(others, 0, chosen, found);
    for (const Partition& partition : found) add_sizes(shared, partition, devices, unit, all);
  }
  return all;
}

int slot_unit(int devices) {
  int unit = 1;
  while (devices / unit > kMostSlices) unit *= 2;
  return unit;
}

int devices_of(const Slots& slots) {
  int end = 0;
  for (const Slot& slot : slots) end = std::max(end, slot.first + slot.count);
  return end;
}

bool nested(const Slots& slots) { return slots.size() > 1 && slots[0].first == 0 && slots[1].first == 0; }

const Slot& slot_of(const Slots& slots, int model) {
  for (const Slot& slot : slots)
    if (std::find(slot.models.begin(), slot.models.end(), model) != slot.models.end()) return slot;
  COLLIMATE_CHECK(false, "a model in no slot");
}

uint32_t cells_of(const Slots& slots, const Slot& slot) {
  const size_t first = nested(slots) ? 1 : 0;
  uint32_t cells = 0;
  for (size_t i = first; i < slots.size(); ++i)
    if (slot.first < slots[i].first + slots[i].count && slots[i].first < slot.first + slot.count)
      cells |= 1U << (i - first);
  return cells;
}

std::string slots_text(const Slots& slots, const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const Slot& slot : slots) parts.push_back(fmt::format("{} {}", models_text(slot, names), slot.count));
  return fmt::format("{}", fmt::join(parts, " | "));
}

std::string form_text(const Slots& slots, const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  for (const Slot& slot : slots) parts.push_back(models_text(slot, names));
  return fmt::format("{}{}", nested(slots) ? "all: " : "", fmt::join(parts, " | "));
}

}  // namespace collimate::plan
