#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "collimate/base/metrics.h"
#include "collimate/recipe/config.h"

namespace collimate::recipe {

// Gives +1 for a metric whose highest value is the best, -1 for one whose lowest is; 0 for all
// others.
int best_direction(const std::string& metric);

// Why run.best_metric cannot tell a best checkpoint, whatever the run comes to, in the form of base/error.h; "" where
// it can, or where it is not set. `measures`: held-out rows are measured.
std::string best_metric_problem(const Config& config, bool measures);

// Values of run.best_metric by the number of iterations that were done, of this run and what it went on from.
class BestMetric {
 public:
  // `recorded`: metrics.jsonl, with lines of either kind of names.
  BestMetric(const Config& config, const std::filesystem::path& recorded);

  bool asked() const { return !name_.empty(); }
  // Notes what a line says that is about to be written. InputError with the metrics that there are where it should have
  // this one and no line had it yet.
  void add(const base::MetricsRecord& record);
  // The higher the better; nothing where that state was not measured.
  std::optional<double> value(int64_t step) const;

 private:
  void note(const base::MetricsRecord& record, const double* value);

  std::string name_;
  std::map<int64_t, double> values_;  // by step
};

}  // namespace collimate::recipe
