#include "collimate/plan/search/search_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "collimate/plan/simulate/simulate_plan.h"

namespace collimate::plan {
namespace {

constexpr int64_t kRefineSteps = 1000;

// A training function has one replica on all devices; others leave dp to the number of replicas unless a replica must
// be larger: for ZeRO's shards, or for experts over more ranks than tp.
graph::Layout layout_of(const Function& function, const Execution& how) {
  graph::Layout layout = how.layout;
  layout.recompute = how.recompute;
  layout.offload = how.offload_optimizer;
  if (function.work == Work::kGenerate) layout.micro_batch = static_cast<int64_t>(how.decoding_rows);
  if (function.work == Work::kTrain || layout.zero >= 3) return layout;
  layout.dp = layout.ep > layout.tp * layout.cp ? layout.ep / (layout.tp * layout.cp) : 1;
  return layout;
}

// With the layout that a module has on its own: nothing but dp is said.
graph::Layout whole_layout(const Function& function, const Execution& how) {
  graph::Layout layout;
  layout.dp = function.work == Work::kTrain ? how.layout.dp : 1;
  return layout;
}

// Whether moving `unit` devices from one slice to another made the plan faster.
bool move_border(const Request& request, const Functions& functions, ChoiceTable& table, Found& found, int unit) {
  const size_t first = nested(found.slots) ? 1 : 0;
  for (size_t from = first; from < found.slots.size(); ++from)
    for (size_t to = first; to < found.slots.size(); ++to) {
      if (from == to || found.slots[from].count <= unit) continue;
      Slots moved = found.slots;
      moved[from].count -= unit;
      moved[to].count += unit;
      align(moved, first);
      Assignment assignment(request, functions, table, moved);
      if (!assignment.feasible() || assignment.bound() >= found.seconds) continue;
      const Assigned assigned = assignment.best(found.seconds * (1 - 1e-9), kRefineSteps);
      if (!assigned.found()) continue;
      found = {moved, assigned.choices, assigned.seconds};
      return true;
    }
  return false;
}

const Choice& leanest(const ChoiceList& list) {
  return *std::min_element(list.all.begin(), list.all.end(), [](const Choice& a, const Choice& b) {
    return a.resident_bytes + a.transient_bytes < b.resident_bytes + b.transient_bytes;
  });
}

HeldItem largest_item(const Request& request, const Job& job, const Choice& choice) {
  const MemoryBound bound =
      memory_of(job, choice.how, request.constants, choice.how.decoding_rows / request.constants.kv_share);
  HeldItem largest;
  for (const auto* items : {&bound.resident, &bound.transient})
    for (const MemoryItem& item : *items)
      if (item.bytes > largest.bytes) largest = {"", item.what, item.bytes};
  return largest;
}

// No plan of all models on so many devices is faster; infinite where they do not fit.
double flat_bound(const Request& request, const Functions& functions, ChoiceTable& table, int devices) {
  Slots slots{{std::vector<int>(functions.models.size()), 0, devices}};
  std::iota(slots[0].models.begin(), slots[0].models.end(), 0);
  const Assignment assignment(request, functions, table, slots);
  return assignment.feasible() ? assignment.bound() : std::numeric_limits<double>::infinity();
}

}  // namespace

std::vector<int> device_counts(const Request& request, const Functions& functions, ChoiceTable& table) {
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
  std::vector<Slots> all;
  for (const int devices : device_counts(request, functions, table))
    for (Slots& slots : enumerate_slots(static_cast<int>(functions.models.size()), devices, slot_unit(devices)))
      all.push_back(std::move(slots));
  return all;
}

void refine(const Request& request, const Functions& functions, ChoiceTable& table, Found& found) {
  const int per_node = request.cluster.groups.at(0).per_node, devices = devices_of(found.slots);
  for (int unit = slot_unit(devices) / 2; unit >= std::min(per_node, unit) && unit >= 1; unit /= 2) {
    if (unit < per_node && devices > 4 * per_node) break;
    while (move_border(request, functions, table, found, unit)) {
    }
  }
}

graph::Placement placement_of(const Request& request, const Functions& functions, const Found& found) {
  graph::Placement placement;
  placement.devices = devices_of(found.slots);
  placement.kind = request.device_kind();
  placement.staleness = request.load.staleness;
  for (const Slot& slot : found.slots) {
    graph::ResourceGroup group{std::vector<int>(static_cast<size_t>(slot.count)), {}};
    std::iota(group.devices.begin(), group.devices.end(), slot.first);
    for (const int model : slot.models) group.models.push_back(functions.models[static_cast<size_t>(model)]);
    placement.groups[group.models.front()] = group;
  }
  for (size_t f = 0; f < functions.size(); ++f) {
    if (functions.at(f).model < 0) continue;
    const graph::Node& node = request.graph.node(functions.at(f).node);
    const Execution& how = found.choices[f]->how;
    placement.layouts[node.model][node.function] =
        request.whole ? whole_layout(functions.at(f), how) : layout_of(functions.at(f), how);
    if (found.choices[f]->swapped) placement.residency[node.model] = graph::Residency::kSwap;
  }
  return placement;
}

void settle(const Request& request, Plan& plan) { set_times(plan, simulate_plan(request, plan)); }

std::string why_nothing_fits(const Request& request, const Functions& functions, ChoiceTable& table) {
  const int devices = request.cluster.devices();
  double resident = 0, transient = 0;
  HeldItem largest;
  for (size_t f = 0; f < functions.size(); ++f) {
    if (functions.at(f).model < 0) continue;
    if (const std::string why = table.why(f, devices); !why.empty()) return why;
    const ChoiceList& list = table.of(f, devices);
    resident += functions.at(f).base < 0 ? list.least_resident : 0;
    transient = std::max(transient, list.least_transient);
    const HeldItem item = largest_item(request, table.job(f, devices), leanest(list));
    const graph::Node& node = request.graph.node(functions.at(f).node);
    if (item.bytes > largest.bytes) largest = {node.model + "." + node.function, item.what, item.bytes};
  }
  const double usable = usable_bytes(request.gpu(), request.constants);
  return fmt::format(
      "each function fits, not all together: at their leanest on all {} devices {:.1f} GB of {:.1f} usable, of which "
      "{} of {} {:.1f} GB",
      devices, (resident + transient) / 1e9, usable / 1e9, largest.what, largest.owner, largest.bytes / 1e9);
}

}  // namespace collimate::plan
