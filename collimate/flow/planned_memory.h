#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "collimate/flow/executor.h"
#include "collimate/tensor/allocator.h"

namespace collimate::flow {

// Bytes that one worker plans to take of its device's memory, by item, largest first.
struct PlannedMemory {
  int worker = 0;
  std::vector<tensor::MemoryItem> items;
  int64_t bytes() const;
};

// Gives what the devices' workers of a placement plan before any setup, without starting them, of all models together:
// MemoryLedger holds it against the budget. One worker of each set of models. Of the options modules, evaluations,
// config and threads_per_worker are read. Throws what making a module throws.
std::vector<PlannedMemory> planned_memory(const graph::Graph& graph, const graph::Placement& placement,
                                          const Registry& registry, const RunOptions& options);

// Gives the bytes that the models of each worker take where some take turns within the budget, as the schedule wants
// to know them; nothing where none do.
graph::DeviceMemory device_memory(const graph::Graph& graph, const graph::Placement& placement,
                                  const Registry& registry, const RunOptions& options);

// Lists, by model, the functions that the run's graph or its evaluations' graphs call.
nlohmann::json calls_of(const graph::Graph& graph, const RunOptions& options);

}  // namespace collimate::flow
