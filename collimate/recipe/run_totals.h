#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/fields.h"
#include "collimate/base/metrics.h"

namespace collimate::recipe {

// Adds up the totals of a whole run from its iterations' metrics: summary.json's sums and best values. Plain data.
class RunTotals {
 public:
  // Adds one line of the run, under verl's names.
  void add(const base::MetricsRecord& record);

  // Returns {"tokens", "tokens_per_second", "phase_seconds": {phase: …}, "best_metrics": {name: {"value", "step"}}}.
  nlohmann::ordered_json summary() const;

  COLLIMATE_MEMBERS(tokens, phase_seconds, best)

 private:
  struct Best {
    double value = 0;
    int64_t step = 0;

    COLLIMATE_FIELDS(value, step)
  };
  double tokens_ = 0;                            // of samples, or of trained rows where nothing was sampled
  std::map<std::string, double> phase_seconds_;  // "gen", "step", …
  std::map<std::string, Best> best_;             // lowest losses; highest rewards, accuracies and margins
};

}  // namespace collimate::recipe
