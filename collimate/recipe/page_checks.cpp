#include "collimate/recipe/page_checks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::recipe {
namespace {

// Is the value, or the node that makes it, named by another node?
bool is_used(const graph::Graph& graph, const std::string& value, const std::string& node = "") {
  return std::ranges::any_of(graph.nodes, [&](const graph::Node& other) {
    return std::ranges::find(other.inputs, value) != other.inputs.end() ||
           std::ranges::find(other.after, node) != other.after.end();
  });
}

void check_used(const std::string& where, const Plan& plan) {
  for (const graph::Input& input : plan.graph.inputs)
    if (!is_used(plan.graph, input.name))
      throw base::InputError(base::expectation(where, fmt::format("a node that reads the input {}", input.name), "none",
                                               "giving it to a call, or leaving it out"));
  for (size_t i = 0; i < plan.graph.nodes.size(); ++i) {
    const graph::Node& node = plan.graph.nodes[i];
    const graph::FunctionSpec& spec = plan.graph.spec(static_cast<int>(i));
    if (spec.makes.empty() || spec.writes_weights || node.id == plan.samples_node) continue;
    std::vector<std::string> columns;
    for (const graph::Column& column : spec.makes) columns.push_back(column.name);
    if (std::ranges::none_of(node.outputs, [&](const auto& value) { return is_used(plan.graph, value, node.id); }))
      throw base::InputError(base::expectation(
          where, fmt::format("a node that reads what {} makes ({})", node.id, fmt::join(columns, ", ")), "none",
          "giving it to a call that trains, or leaving the call out"));
  }
}

// Returns the columns that a value carries: those that its node makes, and those of all that led to it.
std::set<std::string> carried(const graph::Graph& graph, const std::string& value) {
  std::set<std::string> columns;
  for (const graph::Input& input : graph.inputs)
    if (input.name == value)
      for (const graph::Column& column : input.columns) columns.insert(column.name);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    if (std::ranges::find(node.outputs, value) == node.outputs.end()) continue;
    for (const graph::Column& column : graph.spec(static_cast<int>(i)).makes) columns.insert(column.name);
    for (const std::string& input : node.inputs) columns.merge(carried(graph, input));
  }
  return columns;
}

// Throws InputError unless the iteration's samples have the columns by which they are recorded (recipe/records.h).
void check_samples(const std::string& where, const Plan& plan) {
  if (plan.samples_node.empty()) return;
  const auto node = std::ranges::find(plan.graph.nodes, plan.samples_node, &graph::Node::id);
  const std::set<std::string> columns = carried(plan.graph, node->outputs.at(0));
  for (const std::string& column : {batch::kReward.name, batch::kFinish.name, batch::kPromptTokens.name})
    if (!columns.contains(column))
      throw base::InputError(
          base::expectation(where, fmt::format("samples of an iteration with a column '{}'", column),
                            fmt::format("node {}, which carries {}", plan.samples_node, fmt::join(columns, ", ")),
                            "training on completions of a generator that rewards have judged"));
}

}  // namespace

void check_page(const std::string& recipe, const Plan& plan) {
  const std::string where = "recipe " + recipe;
  graph::validate(plan.graph);
  std::vector<std::string> nodes, models;
  for (const graph::Node& node : plan.graph.nodes) nodes.push_back(node.id);
  for (const auto& [name, model] : plan.graph.models) models.push_back(name);
  if (!plan.samples_node.empty() && std::ranges::find(nodes, plan.samples_node) == nodes.end())
    base::throw_unknown_name(where, plan.samples_node, nodes, "samples_node to be a node of its graph, ");
  if (std::ranges::find(models, plan.trained) == models.end())
    base::throw_unknown_name(where, plan.trained, models, "`trained` to be a model of its graph, ");
  check_used(where, plan);
  check_samples(where, plan);
}

void Page::require_two_rows() const {
  if (config_.train.samples_per_update >= 2) return;
  throw base::InputError(base::expectation(
      "train.samples_per_update", "at least 2, as kto joins each prompt with the answer to another",
      std::to_string(config_.train.samples_per_update), "32, or algorithm.loss_type: apo_zero_unpaired"));
}

void Page::check_taught() const {
  const auto& types = config_.algorithm.loss_type.get();
  if (types.size() > 1)
    throw base::InputError(base::expectation("algorithm.loss_type", "one measure of the distance from the teacher",
                                             fmt::format("{}", fmt::join(types, ", ")), types.front()));
  if (config_.redraws() && config_.data.train_on != "completion")
    throw base::InputError(base::expectation("data.train_on",
                                             "completion beside algorithm.on_policy_share, as an answer that is drawn "
                                             "is the last one",
                                             config_.data.train_on.get(), "train_on: completion"));
}

void Page::check_roles() const {
  for (const auto& [name, section] : config_.models) {
    if (roles_.contains(name)) continue;
    const std::string where = config_.models.where(name);
    if (name == "reward" && (config_.recipe == std::string("ppo") || config_.recipe == std::string("grpo")))
      throw base::InputError(base::expectation(where.empty() ? "models.reward" : where,
                                               "one judge of the samples: a list reward or a model", "both",
                                               "leaving out reward, or models.reward"));
    base::throw_unknown_name(where.empty() ? "models" : where, name, {roles_.begin(), roles_.end()},
                             fmt::format("a role that recipe {} reads here, ", config_.recipe.get()));
  }
}

}  // namespace collimate::recipe
