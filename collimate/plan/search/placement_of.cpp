#include "collimate/base/at.h"
#include "collimate/plan/search/found.h"

namespace collimate::plan {
namespace {

// Returns a layout as a placement states it, where dp counts the ranks within one replica. A training function has one
// replica on all devices. Others have dp 1 and a number of replicas, unless a replica must be larger for ZeRO's shards
// or for experts over more ranks than tp.
graph::Layout layout_of(const Function& function, const Execution& how) {
  graph::Layout layout = how.layout;
  if (function.work == Work::kGenerate) layout.micro_batch = static_cast<int64_t>(how.decoding_rows);
  if (function.work == Work::kTrain || layout.zero >= 3) return layout;
  layout.dp = layout.ep > layout.tp * layout.cp ? layout.ep / (layout.tp * layout.cp) : 1;
  return layout;
}

// Returns the layout of a module that holds all weights on each rank: only dp and zero are stated.
graph::Layout whole_layout(const Function& function, const Execution& how) {
  graph::Layout layout;
  layout.dp = function.work == Work::kTrain ? how.layout.dp : 1;
  layout.zero = how.layout.zero;
  return layout;
}

graph::ResourceGroup group_of_slot(const Subcluster& subcluster, const Functions& functions, const Slot& slot) {
  const auto first = subcluster.devices.begin() + slot.first;
  graph::ResourceGroup group{{first, first + slot.count}, {}};
  for (const int model : slot.models) group.models.push_back(base::at(functions.models, model));
  return group;
}

}  // namespace

graph::Placement placement_of(const Subcluster& subcluster, const Functions& functions, const Found& found) {
  const Request& request = subcluster.request;
  graph::Placement placement;
  placement.devices = base::at(subcluster.devices, devices_of(found.slots) - 1) + 1;
  placement.kind = request.device_kind();
  placement.staleness = request.load.staleness;
  for (const Slot& slot : found.slots) {
    const graph::ResourceGroup group = group_of_slot(subcluster, functions, slot);
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
  for (const std::string& model : found.in_turn) placement.residency[model] = graph::Residency::kSwap;
  return placement;
}

}  // namespace collimate::plan
