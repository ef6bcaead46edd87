#include "collimate/flow/planned_memory.h"

#include <string>

#include "collimate/flow/dist_actor.h"
#include "collimate/flow/memory_ledger.h"
#include "collimate/host/core_pool.h"

namespace collimate::flow {

int64_t PlannedMemory::bytes() const {
  int64_t sum = 0;
  for (const tensor::MemoryItem& item : items) sum += item.bytes;
  return sum;
}

std::vector<PlannedMemory> planned_memory(const graph::Graph& own, const graph::Placement& placement,
                                          const Registry& registry, const RunOptions& options) {
  const graph::Graph graph = graph::with_models_of(own, graphs_of(options.evaluations));
  const nlohmann::json calls = calls_of(graph, options);
  host::CorePool pool(options.threads_per_worker);
  std::vector<PlannedMemory> planned;
  for (const auto& [worker, models] : graph::companies(graph, placement)) {
    planned.push_back({worker, {}});
    for (const std::string& model : models) {
      const auto choice = options.modules.find(model);
      Context context;
      context.model = model;
      context.config = options.config;
      context.calls = calls.value(model, std::vector<std::string>());
      context.device = worker;
      context.placement = placement;
      context.alone = comm::Mesh({}, {worker});
      context.meshes = meshes_of(graph, placement, model, worker);
      context.pool = &pool;
      context.parameters = nlohmann::json::object();
      if (choice != options.modules.end() && !choice->second.parameters.is_null())
        context.parameters = choice->second.parameters;
      const std::string& kind = choice == options.modules.end() ? model : choice->second.kind;
      add_items(planned.back().items, registry.create(kind, context.parameters)->memory(context));
    }
  }
  return planned;
}

nlohmann::json calls_of(const graph::Graph& graph, const RunOptions& options) {
  nlohmann::json calls = nlohmann::json::object();
  const auto add = [&](const graph::Graph& from) {
    for (const graph::Node& node : from.nodes) calls[node.model].push_back(node.function);
  };
  add(graph);
  for (const Evaluation& evaluation : options.evaluations) add(evaluation.graph);
  return calls;
}

}  // namespace collimate::flow
