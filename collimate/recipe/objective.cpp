#include "collimate/recipe/objective.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "collimate/base/config.h"
#include "collimate/rlhf/loss/list.h"

namespace collimate::recipe {
namespace {

constexpr std::string_view kAdvantageKind = "advantages.";  // and the name, as Page::advantages makes them

std::string advantage_of(const Plan& plan) {
  for (const auto& [name, module] : plan.modules)
    if (module.kind.starts_with(kAdvantageKind)) return module.kind.substr(kAdvantageKind.size());
  return "";
}

Objective objective_of(const std::string& model, const nlohmann::json& parameters, const std::string& advantage) {
  rlhf::AlgorithmSection algorithm;
  base::apply(parameters.at("algorithm"), "algorithm", algorithm);
  const std::string rows = parameters.at("loss_rows").get<std::string>();
  const bool rollouts = rows == "rollouts";
  Objective objective{.model = model,
                      .losses = rlhf::chosen_types(algorithm, parameters.at("default_loss").get<std::string>()),
                      .weights = algorithm.loss_weights,
                      .advantage = rollouts ? advantage : ""};
  objective.weights.resize(objective.losses.size(), 1.0);
  const std::vector<std::string> read = rlhf::loss_options(rows, objective.losses);
  if (std::find(read.begin(), read.end(), "beta") != read.end())
    objective.beta = algorithm.beta->value_or(rollouts ? rlhf::kRolloutBeta : rlhf::kPairBeta);
  return objective;
}

std::string objective_text(const Objective& objective) {
  std::vector<std::string> terms;
  for (size_t i = 0; i < objective.losses.size(); ++i) {
    const double weight = objective.weights[i];
    terms.push_back((weight == 1.0 ? "" : fmt::format("{} × ", weight)) + objective.losses[i]);
  }
  std::string text = fmt::format("{}", fmt::join(terms, " + "));
  if (!objective.advantage.empty()) text += ", advantage " + objective.advantage;
  if (objective.beta) text += fmt::format(", beta {}", *objective.beta);
  return text;
}

}  // namespace

std::vector<Objective> objectives(const Plan& plan) {
  std::vector<Objective> all;
  const std::string advantage = advantage_of(plan);
  for (const std::string& model : plan.trainers)
    all.push_back(objective_of(model, plan.modules.at(model).parameters, advantage));
  return all;
}

std::vector<std::string> objective_lines(const std::vector<Objective>& objectives) {
  std::vector<std::string> lines;
  for (const Objective& objective : objectives)
    lines.push_back((objectives.size() == 1 ? "loss: " : fmt::format("loss of {}: ", objective.model)) +
                    objective_text(objective));
  return lines;
}

nlohmann::ordered_json to_json(const std::vector<Objective>& objectives) {
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const Objective& objective : objectives) {
    nlohmann::ordered_json one = {{"loss", objective.losses}, {"loss_weights", objective.weights}};
    if (!objective.advantage.empty()) one["advantage"] = objective.advantage;
    if (objective.beta) one["beta"] = *objective.beta;
    all[objective.model] = std::move(one);
  }
  return all;
}

}  // namespace collimate::recipe
