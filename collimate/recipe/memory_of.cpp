#include "collimate/recipe/memory_of.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/memory_words.h"
#include "collimate/recipe/own_copies.h"
#include "collimate/recipe/placement.h"
#include "collimate/recipe/registry.h"

namespace collimate::recipe {
namespace {

flow::RunOptions options_of(const Config& config, const Plan& plan) {
  flow::RunOptions options;
  options.config = base::to_json(config.section_value());
  options.modules = plan.modules;
  for (const EvaluationPlan& evaluation : plan.evaluations)
    options.evaluations.push_back({.name = evaluation.name, .graph = evaluation.graph, .rows = 1});
  return options;
}

int64_t budget_of(const Config& config) { return config.run.memory_budget * (int64_t{1} << 20); }

// Returns "memory: devices 0, 1 plan 54.3 MiB each (…)". `planned` is that of the first device, and all plan the
// same.
std::string memory_line(const flow::PlannedMemory& planned, const std::vector<int>& devices, int64_t budget) {
  const bool many = devices.size() > 1;
  std::string size = base::byte_size(static_cast<double>(planned.planned_bytes));
  if (budget > 0) size += " of " + base::byte_size(static_cast<double>(budget));
  return fmt::format("memory: device{} {} plan{} {}{}{} ({})", many ? "s" : "", fmt::join(devices, ", "),
                     many ? "" : "s", size, many ? " each" : "",
                     planned.has_turns ? " at a time, as models take turns" : "",
                     base::memory_text(flow::named_items(planned.items)));
}

// Throws InputError where the directory cannot be used. The run makes it where it is missing, so the nearest one that
// exists says whether it can.
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

std::vector<flow::PlannedMemory> checked_memory(const Config& config, const Plan& plan,
                                                const graph::Placement& placement) {
  const bool turns = std::ranges::any_of(plan.modules, [&](const auto& entry) { return placement.swaps(entry.first); });
  if (turns || offloads(config, placement)) check_swap_directory(config.run.swap_directory);
  const flow::Registry registry = module_registry();
  flow::RunOptions options = options_of(config, plan);
  options.threads_per_worker = threads_of(config, placement);
  options.memory_budget_bytes = budget_of(config);
  return flow::memory_within_budget(plan.graph, placement, registry, options);
}

std::vector<std::string> memory_lines(const Config& config, const std::vector<flow::PlannedMemory>& planned) {
  std::vector<std::string> lines;
  std::vector<bool> told(planned.size());
  for (size_t i = 0; i < planned.size(); ++i) {
    if (told[i] || planned[i].planned_bytes == 0) continue;
    std::vector<int> devices;
    for (size_t other = i; other < planned.size(); ++other) {
      if (told[other] || !planned[other].plans_as(planned[i])) continue;
      told[other] = true;
      devices.push_back(planned[other].worker);
    }
    lines.push_back(memory_line(planned[i], devices, budget_of(config)));
  }
  return lines;
}

nlohmann::ordered_json to_json(const std::vector<flow::PlannedMemory>& planned) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const flow::PlannedMemory& device : planned) {
    nlohmann::ordered_json items = nlohmann::ordered_json::array();
    for (const tensor::MemoryItem& item : device.items)
      items.push_back({{"item", item.purpose}, {"planned_bytes", item.bytes}});
    list.push_back({{"device", device.worker}, {"planned_bytes", device.planned_bytes}, {"items", std::move(items)}});
  }
  return list;
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
