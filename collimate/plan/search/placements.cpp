#include "collimate/plan/search/placements.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "collimate/plan/search/assignment.h"
#include "collimate/plan/search/neighbours.h"

namespace collimate::plan {
namespace {

// Returns a lower bound on the seconds of plans with all models on all of `devices` devices; infinity where a model
// does not fit on them.
double flat_bound(const Request& request, const Functions& functions, ChoiceTable& table, int devices) {
  Slots slots{{std::vector<int>(functions.models.size()), 0, devices}};
  std::iota(slots[0].models.begin(), slots[0].models.end(), 0);
  const Assignment assignment(request, functions, table, slots);
  return assignment.feasible() ? assignment.bound() : std::numeric_limits<double>::infinity();
}

// Returns every placement in which two models share their devices.
std::vector<Slots> with_pair(int models, int first, int second, int devices, int unit,
                             const std::vector<int>& borders) {
  const int kept = std::min(first, second), left_out = std::max(first, second);
  std::vector<Slots> all = enumerate_slots(models - 1, devices, unit, borders);
  for (Slots& slots : all)
    for (Slot& slot : slots) {
      for (int& model : slot.models) model += model >= left_out ? 1 : 0;
      if (std::find(slot.models.begin(), slot.models.end(), kept) != slot.models.end()) slot.models.push_back(left_out);
      std::sort(slot.models.begin(), slot.models.end());
    }
  return all;
}

// Returns the placements with which a local search begins. These are a few and, where there is just one model too many
// because of a shadow, also all in which a trainer shares the devices of the model that gets its weights.
std::vector<Slots> begin_with(const Request& request, const Functions& functions, int devices, int unit) {
  const int models = static_cast<int>(functions.models.size());
  const std::vector<int> borders = request.cluster.borders();
  std::vector<Slots> all = first_slots(models, devices, unit, borders);
  if (models > request.enumerated_models + 1 || functions.transfers.size() < 2) return all;
  for (const Transfer& transfer : functions.transfers)
    for (Slots& slots : with_pair(models, transfer.source, transfer.destination, devices, unit, borders))
      all.push_back(std::move(slots));
  return all;
}

}  // namespace

std::vector<int> device_counts(const Request& request, const Functions& functions, ChoiceTable& table) {
  if (request.cluster.groups.size() > 1) return {request.cluster.devices()};
  const NodeGroup& group = request.cluster.groups.at(0);
  const int step = group.nodes > 1 ? group.per_node : 1;
  std::vector<int> counts{request.cluster.devices() / step};  // nodes, or devices
  while ((counts.back() & (counts.back() - 1)) != 0) counts.push_back(counts.back() & (counts.back() - 1));
  const auto bound = [&](int count) { return flat_bound(request, functions, table, count * step); };
  while (counts.back() > 1 && bound(counts.back() / 2) < bound(counts.back())) counts.push_back(counts.back() / 2);
  for (int& count : counts) count *= step;
  return counts;
}

std::vector<Slots> all_placements(const Request& request, const Functions& functions, ChoiceTable& table) {
  const int models = static_cast<int>(functions.models.size());
  const std::vector<int> borders = request.cluster.borders();
  std::vector<Slots> all;
  for (const int devices : device_counts(request, functions, table)) {
    const int unit = least_slice(request.cluster, devices);
    for (Slots& slots : models > request.enumerated_models ? begin_with(request, functions, devices, unit)
                                                           : enumerate_slots(models, devices, unit, borders))
      all.push_back(std::move(slots));
  }
  return all;
}

int least_slice(const Cluster& cluster, int devices) { return slot_unit(devices, cluster.groups.size() > 1); }

}  // namespace collimate::plan
