#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "collimate/base/metrics.h"
#include "collimate/recipe/config.h"

namespace collimate::recipe {

// Returns +1 for a metric whose highest value is the best, -1 for one whose lowest value is, and 0 for any other.
int best_direction(const std::string& metric);

// Returns why run.best_metric cannot tell the best checkpoint of any run of this config, in the form of base/error.h;
// "" where it can, or where the option is not set. `measures`: whether held-out rows are measured.
std::string best_metric_problem(const Config& config, bool measures);

// Holds the values of run.best_metric by the number of completed iterations, of this run and of the run that it went on
// from.
class BestMetric {
 public:
  // `recorded`: path of metrics.jsonl, whose lines may have verl's or TRL's names.
  BestMetric(const Config& config, const std::filesystem::path& recorded);

  bool asked() const { return !name_.empty(); }
  // Notes the metric of a line that is about to be written. Throws InputError, which lists the metrics that there are,
  // when the line should have the metric and neither it nor any line before has it.
  void add(const base::MetricsRecord& record);
  // Returns the metric after `step` iterations, negated where lower is better, so that higher is better; nothing where
  // the model was not measured then.
  std::optional<double> value(int64_t step) const;

 private:
  void note(const base::MetricsRecord& record, const double* value);

  std::string name_;
  std::map<int64_t, double> values_;  // by step
};

}  // namespace collimate::recipe
