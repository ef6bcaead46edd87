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

// A PlannedMemory is the most that a device's worker plans to have there at one time, by item, largest first.
struct PlannedMemory {
  int worker = 0;
  std::vector<tensor::MemoryItem> items;
  bool has_turns = false;     // some of its models take turns
  int64_t planned_bytes = 0;  // for the run's summary: with a budget, as much of it as models can fill by staying
  int64_t bytes() const { return bytes_of(items); }
  // Says whether another device's plan differs only in the device.
  bool plans_as(const PlannedMemory& other) const {
    return named_items(items) == named_items(other.items) && has_turns == other.has_turns &&
           planned_bytes == other.planned_bytes;
  }
};

// Returns the models that read weights in place, by RunOptions or WorkerOptions.
std::set<std::string> models_in_place(const auto& options) {
  std::set<std::string> models;
  for (const auto& [model, choice] : options.modules)
    if (choice.in_place) models.insert(model);
  return models;
}

// Returns the items of a worker's models by what is there together: those of all models that do not swap, and beside
// them those of each model that does, or of both models of a link along which weights are moved.
PlannedTurns planned_turns(const graph::Graph& graph, const graph::Placement& placement,
                           const std::set<std::string>& in_place,
                           const std::map<std::string, std::vector<tensor::MemoryItem>>& items);

// Returns what each device's worker of a placement plans before any setup, without starting it; MemoryLedger compares
// this with the budget. Devices without models are left out. The options modules, evaluations, config,
// threads_per_worker and memory_budget_bytes are read. Throws what making a module throws.
std::vector<PlannedMemory> planned_memory(const graph::Graph& graph, const graph::Placement& placement,
                                          const Registry& registry, const RunOptions& options);

// Returns, as the schedule needs them, the bytes that the models of each worker take where some take turns within the
// budget, and which models read weights in place. Returns nothing where none take turns.
graph::DeviceMemory device_memory(const graph::Graph& graph, const graph::Placement& placement,
                                  const Registry& registry, const RunOptions& options);

// Says whether some of the graph's models take turns.
bool take_turns(const graph::Graph& graph, const graph::Placement& placement);

// Returns planned_memory. Throws InputError where a budget has no room for what a device is to hold at one time: all of
// its models or, where they take turns, those that are used together.
std::vector<PlannedMemory> memory_within_budget(const graph::Graph& graph, const graph::Placement& placement,
                                                const Registry& registry, const RunOptions& options);

// Returns, by model, the functions that the run's graph or its evaluations' graphs call.
nlohmann::json calls_of(const graph::Graph& graph, const RunOptions& options);

}  // namespace collimate::flow
