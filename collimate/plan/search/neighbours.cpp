#include "collimate/plan/search/neighbours.h"

#include <algorithm>
#include <numeric>

namespace collimate::plan {
namespace {

// Shares has the models on all devices, and the slices into which the other models divide the devices.
struct Shares {
  std::vector<int> shared;
  Slots slices;
};

Shares shares_of(const Slots& slots) {
  if (slots.size() == 1) return {slots[0].models, {}};
  Shares made;
  for (const Slot& slot : slots)
    if (nested(slots) && &slot == &slots.front())
      made.shared = slot.models;
    else
      made.slices.push_back(slot);
  return made;
}

// Makes a placement of shares. The devices of a slice without models go to the largest other slice; the models of a
// single slice go onto all devices.
Slots slots_of(Shares shares, int devices, const std::vector<int>& borders) {
  int free = 0;
  for (const Slot& slice : shares.slices)
    if (slice.models.empty()) free += slice.count;
  std::erase_if(shares.slices, [](const Slot& slice) { return slice.models.empty(); });
  if (shares.slices.size() < 2) {
    for (const Slot& slice : shares.slices)
      shares.shared.insert(shares.shared.end(), slice.models.begin(), slice.models.end());
    std::sort(shares.shared.begin(), shares.shared.end());
    return {{shares.shared, 0, devices}};
  }
  std::max_element(shares.slices.begin(), shares.slices.end(), [](const Slot& a, const Slot& b) {
    return a.count < b.count;
  })->count += free;
  const size_t slices = shares.slices.size();
  Slots made;
  if (!shares.shared.empty()) made.push_back({std::move(shares.shared), 0, devices});
  for (Slot& slice : shares.slices) made.push_back(std::move(slice));
  for (Slot& slot : made) std::sort(slot.models.begin(), slot.models.end());
  align(made, made.size() - slices, borders);
  return made;
}

// Gives the model a slice of its own: half of the largest one, or of all devices where there is none, in units. Returns
// false where that is less than a unit.
bool add_slice(Shares& shares, int model, int devices, int unit) {
  if (shares.slices.empty()) shares.slices.push_back({{}, 0, devices});
  Slot& largest = *std::max_element(shares.slices.begin(), shares.slices.end(),
                                    [](const Slot& a, const Slot& b) { return a.count < b.count; });
  const int half = largest.count / 2 / unit * unit;
  if (half < 1) return false;
  largest.count -= half;
  shares.slices.push_back({{model}, 0, half});
  return true;
}

void take_out(Shares& shares, int model) {
  std::erase(shares.shared, model);
  for (Slot& slice : shares.slices) std::erase(slice.models, model);
}

class Moves {
 public:
  Moves(const Slots& slots, int unit, const std::vector<int>& borders)
      : from_(shares_of(slots)), devices_(devices_of(slots)), unit_(unit), borders_(borders) {}

  std::vector<Slots> all() {
    std::vector<int> models = from_.shared;
    for (const Slot& slice : from_.slices) models.insert(models.end(), slice.models.begin(), slice.models.end());
    for (const int model : models) move(model);
    for (size_t a = 0; a < from_.slices.size(); ++a)
      for (size_t b = 0; b < from_.slices.size(); ++b) {
        if (a < b) join(a, b);
        if (a != b && from_.slices[a].count > unit_) widen(a, b);
      }
    return std::move(found_);
  }

 private:
  void add(Shares shares) { found_.push_back(slots_of(std::move(shares), devices_, borders_)); }

  void move(int model) {
    for (size_t to = 0; to < from_.slices.size(); ++to) {
      Shares made = from_;
      take_out(made, model);
      made.slices[to].models.push_back(model);
      add(std::move(made));
    }
    Shares everywhere = from_, alone = from_;
    take_out(everywhere, model);
    everywhere.shared.push_back(model);
    add(std::move(everywhere));
    take_out(alone, model);
    if (alone.slices.empty()) {  // all were together: the others go onto the rest
      alone.slices.push_back({std::move(alone.shared), 0, devices_});
      alone.shared.clear();
    }
    if (add_slice(alone, model, devices_, unit_)) add(std::move(alone));
  }

  void join(size_t a, size_t b) {
    Shares made = from_;
    made.slices[a].count += made.slices[b].count;
    made.slices[a].models.insert(made.slices[a].models.end(), made.slices[b].models.begin(),
                                 made.slices[b].models.end());
    made.slices.erase(made.slices.begin() + static_cast<std::ptrdiff_t>(b));
    add(std::move(made));
  }

  void widen(size_t from, size_t to) {
    Shares made = from_;
    made.slices[from].count -= unit_;
    made.slices[to].count += unit_;
    add(std::move(made));
  }

  const Shares from_;
  int devices_, unit_;
  const std::vector<int>& borders_;
  std::vector<Slots> found_;
};

}  // namespace

std::vector<Slots> first_slots(int models, int devices, int unit, const std::vector<int>& borders) {
  std::vector<int> all(static_cast<size_t>(models));
  std::iota(all.begin(), all.end(), 0);
  std::vector<Slots> found{{{all, 0, devices}}};
  const auto without = [&](int a, int b) {
    std::vector<int> others = all;
    std::erase_if(others, [&](int model) { return model == a || model == b; });
    return others;
  };
  for (int a = 0; a < models; ++a)
    for (int b = a; b < models; ++b)
      for (int count = unit; count + unit <= devices; count += unit) {
        const std::vector<int> others = without(a, b), apart = a == b ? std::vector<int>{a} : std::vector<int>{a, b};
        found.push_back(slots_of({{}, {{apart, 0, count}, {others, 0, devices - count}}}, devices, borders));
        if (a != b) found.push_back(slots_of({others, {{{a}, 0, count}, {{b}, 0, devices - count}}}, devices, borders));
      }
  return found;
}

std::vector<Slots> neighbours(const Slots& slots, int unit, const std::vector<int>& borders) {
  return Moves(slots, unit, borders).all();
}

}  // namespace collimate::plan
