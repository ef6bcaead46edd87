#pragma once

#include <map>
#include <string>

#include "bench/published/scenario.h"
#include "collimate/plan/layout/candidates.h"

namespace collimate::plan::published {

// A Prediction is one iteration of a published run as the cost model predicts it.
struct Prediction {
  std::map<std::string, PhaseTime> phases;  // by name: generate, log_probs, ref, reward, critic, train, critic_train
  std::map<std::string, Execution> executions;
  double transfer_seconds = 0;  // for moving new weights to generation
  double waiting_seconds = 0;   // that training waits for exposed generation and for the weights' transfer
  double step_seconds = 0;
  std::string misfit;  // why the plain set-up (no off-loading, no tensor parallelism in generation) has no room; or ""
  double seconds(const std::string& phase) const;
};

// Predicts a scenario. `layouts` are those of an earlier prediction, to be used again; with null they are chosen.
Prediction predict(const Scenario& scenario, const Constants& constants,
                   const std::map<std::string, Execution>* layouts = nullptr);

}  // namespace collimate::plan::published
