#include "collimate/flow/planned_memory.h"

#include <algorithm>
#include <string>

#include "collimate/flow/dist_actor.h"
#include "collimate/host/core_pool.h"

namespace collimate::flow {
namespace {

// An Asker asks modules what they will take, without setting them up.
class Asker {
 public:
  Asker(const graph::Graph& graph, const graph::Placement& placement, const Registry& registry,
        const RunOptions& options)
      : graph_(graph),
        placement_(placement),
        registry_(registry),
        options_(options),
        calls_(calls_of(graph, options)),
        pool_(options.threads_per_worker) {}

  std::vector<tensor::MemoryItem> items(int worker, const std::string& model) {
    const Context context = context_of(worker, model);
    return module_of(context)->memory(context);
  }

  bool keeps_state(int worker, const std::string& model) {
    const Context context = context_of(worker, model);
    return module_of(context)->keeps_state(context);
  }

 private:
  Context context_of(int worker, const std::string& model) {
    const auto choice = options_.modules.find(model);
    Context context;
    context.model = model;
    context.config = options_.config;
    context.calls = calls_.value(model, std::vector<std::string>());
    context.device = worker;
    context.placement = placement_;
    context.alone = comm::Mesh({}, {worker});
    context.meshes = meshes_of(graph_, placement_, model, worker);
    context.pool = &pool_;
    context.parameters = nlohmann::json::object();
    if (choice != options_.modules.end() && !choice->second.parameters.is_null())
      context.parameters = choice->second.parameters;
    return context;
  }

  std::unique_ptr<Module> module_of(const Context& context) const {
    const auto choice = options_.modules.find(context.model);
    return registry_.create(choice == options_.modules.end() ? context.model : choice->second.kind, context.parameters);
  }

  const graph::Graph& graph_;
  const graph::Placement& placement_;
  const Registry& registry_;
  const RunOptions& options_;
  const nlohmann::json calls_;
  host::CorePool pool_;
};

// Says whether every device with these models holds all of each. Such devices plan alike, except that the first takes a
// little more where ZeRO divides unevenly. A search of placements asks about thousands of them, and making a layout of
// each takes all devices of its group.
bool holds_whole(const graph::Graph& graph, const graph::Placement& placement, const std::vector<std::string>& models) {
  return std::ranges::all_of(models, [&](const std::string& model) {
    return std::ranges::all_of(graph.models.at(model).functions, [&](const graph::FunctionSpec& function) {
      const graph::Layout layout = placement.layout(model, function.name);
      return layout.tp == 1 && layout.pp == 1 && layout.ep == 1 && layout.cp == 1;
    });
  });
}

}  // namespace

PlannedTurns planned_turns(const graph::Graph& graph, const graph::Placement& placement,
                           const std::set<std::string>& in_place,
                           const std::map<std::string, std::vector<tensor::MemoryItem>>& items) {
  PlannedTurns planned;
  for (const auto& [model, of_model] : items)
    placement.swaps(model) ? planned.plan_turn(of_model) : planned.plan(of_model);
  for (const graph::WeightLink& link : graph.links) {
    const auto source = items.find(link.source), destination = items.find(link.destination);
    if (source == items.end() || destination == items.end() || in_place.contains(link.destination)) continue;
    if (!placement.swaps(link.source) && !placement.swaps(link.destination)) continue;
    std::vector<tensor::MemoryItem> both = source->second;
    add_items(both, destination->second);
    planned.plan_turn(both);
  }
  return planned;
}

std::vector<PlannedMemory> planned_memory(const graph::Graph& own, const graph::Placement& placement,
                                          const Registry& registry, const RunOptions& options) {
  const graph::Graph graph = graph::with_models_of(own, graphs_of(options.evaluations));
  Asker asker(graph, placement, registry, options);
  std::vector<PlannedMemory> planned;
  std::map<int, std::vector<std::string>> models_on;  // device → models
  for (const auto& [model, content] : graph.models)
    for (const int worker : graph::workers_of(graph, placement, model))
      if (worker < placement.devices) models_on[worker].push_back(model);
  std::map<std::vector<std::string>, PlannedMemory> of_whole;  // models → plan of the first device with just these
  for (const auto& [worker, models] : models_on) {
    const bool whole = holds_whole(graph, placement, models);
    if (const auto alike = of_whole.find(models); whole && alike != of_whole.end()) {
      planned.push_back(alike->second);
      planned.back().worker = worker;
      continue;
    }
    std::map<std::string, std::vector<tensor::MemoryItem>> items;
    for (const std::string& model : models) items[model] = asker.items(worker, model);
    const PlannedTurns turns = planned_turns(graph, placement, models_in_place(options), items);
    planned.push_back({worker, turns.largest_turn(), turns.has_turns(), turns.bytes(options.memory_budget_bytes)});
    if (whole) of_whole.emplace(models, planned.back());
  }
  return planned;
}

bool take_turns(const graph::Graph& graph, const graph::Placement& placement) {
  return std::any_of(graph.models.begin(), graph.models.end(),
                     [&](const auto& model) { return placement.swaps(model.first); });
}

graph::DeviceMemory device_memory(const graph::Graph& graph, const graph::Placement& placement,
                                  const Registry& registry, const RunOptions& options) {
  if (!take_turns(graph, placement)) return {};
  graph::DeviceMemory memory{.budget_bytes = options.memory_budget_bytes, .in_place = models_in_place(options)};
  Asker asker(graph, placement, registry, options);
  for (const auto& [model, content] : graph.models)
    if (placement.swaps(model) && !asker.keeps_state(graph::workers_of(graph, placement, model).at(0), model))
      memory.stateless.insert(model);
  if (options.memory_budget_bytes == 0) return memory;
  for (const auto& [model, content] : graph.models)
    for (const int worker : graph::workers_of(graph, placement, model))
      for (const tensor::MemoryItem& item : asker.items(worker, model))
        memory.items[worker][model][item.purpose] = item.bytes;
  return memory;
}

std::vector<PlannedMemory> memory_within_budget(const graph::Graph& graph, const graph::Placement& placement,
                                                const Registry& registry, const RunOptions& options) {
  std::vector<PlannedMemory> devices = planned_memory(graph, placement, registry, options);
  if (options.memory_budget_bytes == 0) return devices;
  const std::vector<graph::EvaluationGraph> evaluations = graphs_of(options.evaluations);
  const graph::Graph all = graph::with_models_of(graph, evaluations);
  if (take_turns(all, placement)) {
    const graph::DeviceMemory memory = device_memory(all, placement, registry, options);
    const graph::Schedule checked(all, placement, options.schedule, evaluations, memory);
  }
  // A budget that is enough for the device that plans the most is enough for all.
  const auto most = std::ranges::max_element(devices, {}, &PlannedMemory::bytes);
  if (most != devices.end()) require_room(most->worker, most->items, options.memory_budget_bytes);
  return devices;
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
