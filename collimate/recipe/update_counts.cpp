// This file counts a plan's updates.
#include "collimate/recipe/page.h"

namespace collimate::recipe {

int64_t trained_rows(const Plan& plan, int64_t rows) {
  return rows - (plan.greedy_baseline ? rows / plan.group_size : 0);
}

int64_t updates_of_rows(const Config& config, const Plan& plan, int64_t rows) {
  const int64_t per_update = config.train.samples_per_update, trained = trained_rows(plan, rows);
  return config.train.ppo_epochs * (per_update == 0 ? 1 : (trained + per_update - 1) / per_update);
}

int64_t updates_per_iteration(const Config& config, const Plan& plan) {
  return updates_of_rows(config, plan, plan.rows_per_iteration);
}

int64_t total_updates(const Config& config, const Plan& plan) {
  const int64_t smaller = plan.epoch_iterations > 0 ? config.run.iterations / plan.epoch_iterations : 0;
  return (config.run.iterations - smaller) * updates_per_iteration(config, plan) +
         smaller * updates_of_rows(config, plan, plan.last_rows);
}

void tell_updates(const Config& config, Plan& plan) {
  for (const std::string& trainer : plan.trainers) {
    nlohmann::json& parameters = plan.modules.at(trainer).parameters;
    parameters["total_updates"] = total_updates(config, plan);
    parameters["updates_per_epoch"] = updates_per_iteration(config, plan) / config.train.ppo_epochs;
  }
}

}  // namespace collimate::recipe
