#include "collimate/recipe/memory_of.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/recipe/own_copies.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/registry.h"

namespace collimate::recipe {
namespace {

constexpr double kMebi = 1 << 20;

flow::RunOptions options_of(const Config& config, const Plan& plan) {
  flow::RunOptions options;
  options.config = base::to_json(config.section_value());
  options.modules = plan.modules;
  for (const EvaluationPlan& evaluation : plan.evaluations)
    options.evaluations.push_back({.name = evaluation.name, .graph = evaluation.graph, .rows = 1});
  return options;
}

std::string turn_line(const flow::PlannedMemory& planned) {
  std::string items;
  for (size_t i = 0; i < std::min<size_t>(3, planned.items.size()); ++i)
    items += fmt::format("{}{} {:.1f}", i == 0 ? "" : ", ", planned.items[i].purpose,
                         static_cast<double>(planned.items[i].bytes) / kMebi);
  return fmt::format("memory: device {} plans {:.1f} MiB at a time, as its models take turns: {}{}", planned.worker,
                     static_cast<double>(planned.planned_bytes) / kMebi, items, planned.items.size() > 3 ? ", …" : "");
}

// The run makes the directory where it is missing: the nearest one that exists says whether it can.
void check_swap_directory(const std::string& directory) {
  if (directory.empty()) return;
  std::error_code error;
  std::filesystem::path nearest = std::filesystem::absolute(directory);
  while (!std::filesystem::exists(nearest, error) && nearest.has_relative_path()) nearest = nearest.parent_path();
  const bool is_directory = std::filesystem::is_directory(nearest, error);
  if (is_directory && ::access(nearest.c_str(), W_OK | X_OK) == 0) return;
  throw base::InputError(base::expectation(
      "run.swap_directory", "a directory in which files can be made",
      fmt::format("{}, as {} {}", directory, nearest.string(), is_directory ? "cannot be written" : "is no directory"),
      "a directory of a disk, or the run's own by leaving it out"));
}

bool offloads(const Config& config, const graph::Placement& placement) {
  bool any = config.train.offload != std::string("none");
  for (const auto& [model, functions] : placement.layouts)
    for (const auto& [function, layout] : functions) any = any || layout.offload;
  return any;
}

}  // namespace

std::vector<std::string> turn_lines(const Config& config, const Plan& plan, const graph::Placement& placement) {
  const bool turns = std::ranges::any_of(plan.modules, [&](const auto& entry) { return placement.swaps(entry.first); });
  if (turns || offloads(config, placement)) check_swap_directory(config.run.swap_directory);
  if (!turns) return {};
  const flow::Registry registry = module_registry();
  flow::RunOptions options = options_of(config, plan);
  options.threads_per_worker = threads_of(config, placement);
  options.memory_budget_bytes = config.run.memory_budget * (int64_t{1} << 20);
  flow::check_turns(plan.graph, placement, registry, options);
  std::vector<std::string> lines;
  for (const flow::PlannedMemory& planned : flow::planned_memory(plan.graph, placement, registry, options))
    if (planned.has_turns) lines.push_back(turn_line(planned));
  return lines;
}

MemoryOf memory_of(const Config& config, const Plan& plan) {
  const flow::RunOptions options = options_of(config, plan);
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
