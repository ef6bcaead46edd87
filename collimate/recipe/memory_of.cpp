#include "collimate/recipe/memory_of.h"

#include <filesystem>
#include <memory>

#include "collimate/base/config.h"
#include "collimate/recipe/own_copies.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/registry.h"

namespace collimate::recipe {

MemoryOf memory_of(const Config& config, const Plan& plan) {
  flow::RunOptions options;
  options.config = base::to_json(config.section_value());
  for (const EvaluationPlan& evaluation : plan.evaluations)
    options.evaluations.push_back({.name = evaluation.name, .graph = evaluation.graph});
  Plan seen = plan;
  for (auto& [name, module] : seen.modules)
    if (module.parameters.contains("path"))
      module.parameters["path"] =
          std::filesystem::absolute(module.parameters.at("path").get<std::string>()).lexically_normal().string();
  return [options, seen, threads = config.run.threads.get(),
          registry = std::make_shared<const flow::Registry>(module_registry())](const graph::Placement& placement) {
    Plan placed = seen;
    give_own_copies(placement, placed);
    keep_frozen_apart(placement, placed);
    flow::RunOptions asked = options;
    asked.modules = placed.modules;
    asked.threads_per_worker = threads_of(threads, placement);
    return flow::planned_memory(placed.graph, placement, *registry, asked);
  };
}

}  // namespace collimate::recipe
