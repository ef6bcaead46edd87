#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "collimate/flow/executor.h"
#include "collimate/flow/planned_turns.h"
#include "collimate/tensor/allocator.h"

namespace collimate::flow {

// The most that a device's worker plans to have there at a time, by item, largest first.
struct PlannedMemory {
  int worker = 0;
  std::vector<tensor::MemoryItem> items;
  bool has_turns = false;     // some of its models swap
  int64_t planned_bytes = 0;  // what the run's summary says: with a budget, as much of it as models can fill by staying
  int64_t bytes() const { return bytes_of(items); }
  // Whether another device's plan is this one but for the device.
  bool plans_as(const PlannedMemory& other) const {
    return named_items(items) == named_items(other.items) && has_turns == other.has_turns &&
           planned_bytes == other.planned_bytes;
  }
};

// Gives the items of a worker's models, by what is there together: all that do not swap, beside them each that does, or
// both models of a link along which weights are moved.
PlannedTurns planned_turns(const graph::Graph& graph, const graph::Placement& placement,
                           const std::set<std::string>& in_place,
                           const std::map<std::string, std::vector<tensor::MemoryItem>>& items);

// Gives what each device's worker of a placement plans before any setup, without starting it: MemoryLedger holds it
// against the budget. Those of no models are left out. Of the options modules, evaluations, config,
// threads_per_worker and memory_budget_bytes are read. Throws what making a module throws.
std::vector<PlannedMemory> planned_memory(const graph::Graph& graph, const graph::Placement& placement,
                                          const Registry& registry, const RunOptions& options);

// Gives the bytes that the models of each worker take where some take turns within the budget, and which read weights
// in place, as the schedule wants to know them; nothing where none take turns.
graph::DeviceMemory device_memory(const graph::Graph& graph, const graph::Placement& placement,
                                  const Registry& registry, const RunOptions& options);

// Whether some of the graph's models take turns.
bool take_turns(const graph::Graph& graph, const graph::Placement& placement);

// planned_memory, and InputError where a budget has no room for what a device is to hold at a time: all of its models,
// or where they take turns those that are used together.
std::vector<PlannedMemory> memory_within_budget(const graph::Graph& graph, const graph::Placement& placement,
                                                const Registry& registry, const RunOptions& options);

// Lists, by model, the functions that the run's graph or its evaluations' graphs call.
nlohmann::json calls_of(const graph::Graph& graph, const RunOptions& options);

}  // namespace collimate::flow
