#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "collimate/graph/forms.h"
#include "tests/support/flow/toy_modules.h"

// Runs of the toy flow, and what they are compared by.
namespace collimate::flow::toy {

// A run is judged by its outcome: every iteration's metrics (without times) and the rows that were trained on.
struct Outcome {
  std::vector<std::string> lines;
  bool operator==(const Outcome&) const = default;
};

inline std::string line_of(const IterationResult& result) {
  nlohmann::ordered_json line = {{"iteration", result.iteration}};
  for (const auto& [name, value] : result.metrics.items())
    if (!name.starts_with("timing_s/") && !name.starts_with("memory/")) line[name] = value;
  for (const auto& [node, rows] : result.batches) {
    if (rows.has(batch::kReward.name)) line[node] = rows.all(batch::kReward);
    line[node + " uid"] = rows.all(batch::kUid);
  }
  return line.dump();
}

inline RunOptions options_for(Outcome& outcome, int64_t iterations = 3) {
  RunOptions options = run_options(iterations);
  options.seed = 5;
  options.on_iteration = [&outcome](const IterationResult& result) { outcome.lines.push_back(line_of(result)); };
  return options;
}

enum class Place { kOneDevice, kBothOnTwo, kApart, kSeveral };  // kSeveral: two generators apart from the trainer

inline graph::Placement placement_of(const graph::Graph& graph, Place place) {
  if (place == Place::kApart || place == Place::kSeveral)
    return graph::separation(graph, place == Place::kApart ? 2 : 3, 1);
  return graph::flattening(graph, place == Place::kOneDevice ? 1 : 2);
}

inline Outcome run_with(const std::function<void(RunOptions&)>& change, Place place = Place::kOneDevice) {
  Outcome outcome;
  RunOptions options = options_for(outcome);
  change(options);
  graph::Graph graph = flow();
  Registry known = toy::registry();
  run(graph, placement_of(graph, place), known, options);
  return outcome;
}

inline Outcome plain() {
  return run_with([](RunOptions&) {});
}

inline std::string temporary(const std::string& name) {
  std::string path = testing::TempDir() + "collimate-flow-" + std::to_string(getpid()) + "-" + name;
  std::filesystem::remove_all(path);
  return path;
}

// Eight rows generated and nothing else.
inline Evaluation generating_evaluation() {
  graph::ModelHandle policy("policy", {generate_spec()});
  return evaluation_of("evaluation", [&](graph::Value prompts) { policy("generate", prompts); });
}

}  // namespace collimate::flow::toy
