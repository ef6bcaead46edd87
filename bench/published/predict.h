#pragma once

#include <map>
#include <string>

#include "bench/published/scenario.h"
#include "collimate/plan/layout/candidates.h"

namespace collimate::plan::published {

// One iteration of a published run by the cost model.
struct Prediction {
  std::map<std::string, PhaseTime> phases;  // generate, log_probs, ref, reward, critic, train, critic_train
  std::map<std::string, Execution> executions;
  double transfer_seconds = 0;  // of new weights to generation
  double waiting_seconds = 0;   // that training waits for generation's side: what is exposed of it, and the weights
  double step_seconds = 0;
  std::string misfit;  // of the system's plain set-up: no off-loading, no tensor parallelism in generation
  double seconds(const std::string& phase) const;
};

// `layouts`: those of an earlier prediction, to be used again; null: they are chosen.
Prediction predict(const Scenario& scenario, const Constants& constants,
                   const std::map<std::string, Execution>* layouts = nullptr);

}  // namespace collimate::plan::published
