#include "collimate/plan/search/slots.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

constexpr int kMostSlices = 16, kMostOrderedSlices = 8;

using Partition = std::vector<std::vector<int>>;

// Adds to `out` the set partitions of `models`. Those before `at` are in the blocks of `chosen`, and each block begins
// with its smallest member.
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

// Adds to `out` every ordered list of `parts` sizes in units that add up to `left`, behind those in `chosen`.
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

void tile(Slots& slots, size_t first_slice) {
  int first = 0;
  for (size_t i = first_slice; i < slots.size(); ++i) {
    slots[i].first = first;
    first += slots[i].count;
  }
}

// Returns the index of the kind on which all of a slice lies; -1 where it lies on several.
int kind_of_slice(const Slot& slice, const std::vector<int>& borders) {
  const auto kind = [&](int device) { return std::upper_bound(borders.begin(), borders.end(), device); };
  const auto first = kind(slice.first);
  return first == kind(slice.first + slice.count - 1) ? static_cast<int>(first - borders.begin()) : -1;
}

size_t largest_of(const std::vector<int>& counts) {
  return static_cast<size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

// OrderedSlices puts blocks on slices of several kinds of device in every order that counts: of neighbours in one kind
// the block with the lower index comes first.
class OrderedSlices {
 public:
  OrderedSlices(const Partition& blocks, int devices, int unit, const std::vector<int>& borders)
      : blocks_(blocks), borders_(borders), used_(blocks.size()) {
    std::vector<int> kinds = borders;
    kinds.push_back(devices);
    for (int begin = 0; const int end : kinds) {
      for (int at = begin + unit; at < end; at += unit) ends_.push_back(at);
      ends_.push_back(end);
      begin = end;
    }
  }

  std::vector<Slots> all() {
    place(0);
    return std::move(found_);
  }

 private:
  void place(int at) {
    if (chosen_.size() == blocks_.size()) return found_.push_back(chosen_);
    const bool last = chosen_.size() + 1 == blocks_.size();
    for (size_t block = 0; block < blocks_.size(); ++block)
      for (const int end : ends_)
        if (!used_[block] && (last ? end == ends_.back() : end < ends_.back()) && end > at) try_slice(block, at, end);
  }

  void try_slice(size_t block, int at, int end) {
    const Slot slice{blocks_[block], at, end - at};
    const int kind = kind_of_slice(slice, borders_);
    if (kind >= 0 && !chosen_.empty() && kind == kind_of_slice(chosen_.back(), borders_) && block < latest_) return;
    const size_t before = std::exchange(latest_, block);
    used_[block] = true;
    chosen_.push_back(slice);
    place(end);
    chosen_.pop_back();
    used_[block] = false;
    latest_ = before;
  }

  const Partition& blocks_;
  const std::vector<int>& borders_;
  std::vector<int> ends_;  // where a slice may end, ascending
  std::vector<bool> used_;
  Slots chosen_;
  size_t latest_ = 0;  // block of the last slice
  std::vector<Slots> found_;
};

void add_ordered(const std::vector<int>& shared, const Partition& partition, int devices, int unit,
                 const std::vector<int>& borders, std::vector<Slots>& out) {
  for (Slots& slices : OrderedSlices(partition, devices, unit, borders).all()) {
    if (!shared.empty()) slices.insert(slices.begin(), {shared, 0, devices});
    align(slices, shared.empty() ? 0 : 1, borders);
    out.push_back(std::move(slices));
  }
}

void add_sizes(const std::vector<int>& shared, const Partition& partition, int devices, int unit,
               std::vector<Slots>& out) {
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
  for (const int model : slot.models) models.push_back(base::at(names, model));
  return fmt::format("{}", fmt::join(models, "+"));
}

}  // namespace

// A slice whose size is a multiple of a larger power of two begins earlier.
void align(Slots& slots, size_t first_slice, const std::vector<int>& borders) {
  tile(slots, first_slice);
  const auto first = slots.begin() + static_cast<std::ptrdiff_t>(first_slice);
  for (auto begin = first; begin != slots.end();) {
    const int kind = kind_of_slice(*begin, borders);
    const auto end = std::find_if(begin + 1, slots.end(),
                                  [&](const Slot& slice) { return kind < 0 || kind_of_slice(slice, borders) != kind; });
    std::stable_sort(begin, end, [](const Slot& a, const Slot& b) {
      return largest_power_within(a.count) > largest_power_within(b.count);
    });
    begin = end;
  }
  tile(slots, first_slice);
}

std::vector<Slots> enumerate_slots(int models, int devices, int unit, const std::vector<int>& borders) {
  std::vector<Slots> all;
  for (int mask = 0; mask < 1 << models; ++mask) {
    std::vector<int> shared, others;
    for (int model = 0; model < models; ++model) ((mask >> model & 1) != 0 ? shared : others).push_back(model);
    std::vector<Partition> found;
    Partition chosen;
    partitions(others, 0, chosen, found);
    for (const Partition& partition : found) {
      if (partition.empty())
        all.push_back({{shared, 0, devices}});
      else if (partition.size() == 1)
        continue;  // one slice is all devices: the placement in which all models share them
      else if (borders.empty())
        add_sizes(shared, partition, devices, unit, all);
      else
        add_ordered(shared, partition, devices, unit, borders, all);
    }
  }
  return all;
}

int slot_unit(int devices, bool several_kinds) {
  int unit = 1;
  while (devices / unit > (several_kinds ? kMostOrderedSlices : kMostSlices)) unit *= 2;
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

std::vector<DeviceRange> cells(const Slots& slots) {
  std::vector<DeviceRange> ranges;
  for (size_t i = nested(slots) ? 1 : 0; i < slots.size(); ++i) ranges.push_back(slots[i].range());
  return ranges;
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
