#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/philox.h"
#include "collimate/plan/simulate/simulate.h"
#include "tests/support/base/dice.h"

// Random graphs, placements and predictions for the property tests of Schedule. Everything follows from one number.
namespace collimate::plan::random_flow {

using base::Dice;

// One function per node, over a few models: the first node generates, some filter, some need whole iterations.
inline graph::Graph make_graph(Dice& dice) {
  graph::Graph made;
  made.name = "random";
  made.inputs = {{"prompts", {}}};
  const int nodes = 2 + dice.below(5), models = 1 + dice.below(4);
  std::vector<bool> whole;  // needs a complete iteration, itself or above it
  for (int n = 0; n < nodes; ++n) {
    graph::FunctionSpec spec;
    spec.name = "f" + std::to_string(n);
    spec.kind = n == 0 ? graph::Kind::kGenerate : dice.one_in(3) ? graph::Kind::kHost : graph::Kind::kScore;
    spec.streams = n == 0 || dice.one_in(3);
    spec.granularity = dice.one_in(3)            ? graph::Granularity::kGroup
                       : dice.one_in(4) && n > 0 ? graph::Granularity::kIteration
                                                 : graph::Granularity::kRow;
    graph::Node node{"n" + std::to_string(n), "", spec.name, {}, {"n" + std::to_string(n)}, {}, {}, {}};
    bool above = spec.granularity == graph::Granularity::kIteration;
    for (int p = 0; p < n; ++p)
      if (dice.one_in(2)) {
        node.inputs.push_back("n" + std::to_string(p));
        above = above || base::at(whole, p);
      }
    if (node.inputs.empty()) node.inputs = {"prompts"};
    spec.drops_rows = n > 0 && !above && dice.one_in(3);
    whole.push_back(above);
    node.model =
        spec.kind == graph::Kind::kHost ? "host" + std::to_string(n) : "model" + std::to_string(dice.below(models));
    made.models[node.model].functions.push_back(spec);
    made.nodes.push_back(node);
  }
  graph::FunctionSpec train;
  train.name = "train";
  train.kind = graph::Kind::kTrain;
  train.granularity = graph::Granularity::kIteration;
  train.writes_weights = true;
  const std::string trainer = dice.one_in(2) ? "trainer" : made.nodes[0].model;
  made.models[trainer].functions.push_back(train);
  made.nodes.push_back({"train", trainer, "train", {"n" + std::to_string(nodes - 1), "n0"}, {"train"}, {}, {}, {}});
  if (trainer == "trainer") made.links.push_back({trainer, made.nodes[0].model, 1 + dice.below(2)});
  return made;
}

inline graph::Placement make_placement(const graph::Graph& graph, Dice& dice) {
  graph::Placement made;
  made.devices = 1 + dice.below(4);
  for (const auto& [name, model] : graph.models) {
    if (name.rfind("host", 0) == 0) {
      made.hosts[name] = 1 + dice.below(2);
      continue;
    }
    graph::ResourceGroup& group = made.groups["of_" + name];
    group.models = {name};
    const int first = dice.below(made.devices), count = 1 + dice.below(made.devices - first);
    for (int d = first; d < first + count; ++d) group.devices.push_back(d);
    if (count % 2 == 0 && dice.one_in(3))
      for (const graph::FunctionSpec& spec : model.functions) made.layouts[name][spec.name].tp = 2;
    if (dice.one_in(3)) made.residency[name] = graph::Residency::kSwap;
  }
  made.staleness = dice.below(3);
  return made;
}

inline graph::ScheduleOptions make_options(Dice& dice) {
  graph::ScheduleOptions made;
  made.iterations = 1 + dice.below(4);
  made.group_size = 1 + dice.below(3);
  made.rows = made.group_size * (1 + dice.below(6));
  made.update_in_flight = dice.one_in(2);
  made.save_every = dice.below(3);
  made.evaluate_every = dice.below(3);
  made.evaluate_first = dice.one_in(3);
  return made;
}

// Up to two evaluations: the first node alone, or with it a model of their own that scores what it makes.
inline std::vector<graph::EvaluationGraph> make_evaluations(const graph::Graph& graph, Dice& dice) {
  std::vector<graph::EvaluationGraph> made;
  for (int i = dice.below(3); i > 0; --i) {
    graph::EvaluationGraph& evaluation = made.emplace_back();
    evaluation.name = "evaluation" + std::to_string(i);
    evaluation.graph = graph;
    evaluation.graph.links.clear();
    evaluation.graph.nodes.resize(1);
    if (dice.one_in(2)) {
      graph::FunctionSpec spec;
      spec.name = "judge";
      spec.kind = graph::Kind::kScore;
      if (dice.one_in(2)) spec.granularity = graph::Granularity::kIteration;
      const std::string model = "judge" + std::to_string(i);
      evaluation.graph.models[model].functions = {spec};
      evaluation.graph.nodes.push_back({"judge", model, "judge", {"n0"}, {"judge"}, {}, {}, {}});
    }
    evaluation.group_size = 1 + dice.below(2);
    evaluation.rows = evaluation.group_size * (1 + dice.below(3));
    if (dice.one_in(2)) evaluation.every = dice.below(3);
    if (dice.one_in(2)) evaluation.first = dice.one_in(2);
  }
  return made;
}

inline Predictions make_predictions(uint64_t seed, int drop_one_in) {
  Predictions made;
  made.seconds = [seed](const graph::Task& task, int64_t rows) {
    const uint64_t bits = base::random_bits(seed, 1, static_cast<uint64_t>(task.iteration * 100 + task.node),
                                            static_cast<uint32_t>(rows * 10 + task.replica));
    return static_cast<double>(bits % 8) * static_cast<double>(rows);
  };
  made.drops = [seed, drop_one_in](const graph::Task& task, int64_t first) {
    return base::random_bits(seed, 2, static_cast<uint64_t>(first), static_cast<uint32_t>(task.iteration)) %
               static_cast<uint64_t>(drop_one_in) ==
           0;
  };
  return made;
}

}  // namespace collimate::plan::random_flow
