#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Says by what one trained model learns, with the values that the config leaves to the recipe and the loss.
struct Objective {
  std::string model;  // its name in the graph: policy_trainer
  std::vector<std::string> losses;
  std::vector<double> weights;  // of the losses
  std::string advantage;        // "" where the losses read none
  std::optional<double> beta;   // nothing where no loss reads it
};

// Returns the objective of every trained model of the plan.
std::vector<Objective> objectives(const Plan& plan);

// Returns a line for each, "loss: grpo, advantage group, beta 0", with the model's name where several are trained.
std::vector<std::string> objective_lines(const std::vector<Objective>& objectives);
nlohmann::ordered_json to_json(const std::vector<Objective>& objectives);

}  // namespace collimate::recipe
