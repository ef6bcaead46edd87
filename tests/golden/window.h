#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/golden/compare.h"
#include "tests/golden/options.h"

namespace collimate::golden {

// A step that ends an update has a gradient norm; after one without, accumulation goes on.
bool has_norm(const json& recorded);

// Micro-batches of the update that each step belongs to (TRL's current_gradient_accumulation_steps, which the end of an
// epoch makes smaller), from those that each step holds. Steps with which the file ends before their update have the
// `declared` number, or theirs where that is more.
std::vector<size_t> window_lengths(const json& steps, const std::vector<size_t>& micros, size_t declared);

// Metrics as TRL logs them: the mean over the micro-batches that reported one since it was logged last.
class MetricLog {
 public:
  explicit MetricLog(const std::map<std::string, double>& metrics = {}) { add(metrics); }

  void add(const std::map<std::string, double>& metrics);
  // Compares what a log of step `step`, counted from 0, has under their names (theirs -> ours) against our means, which
  // then begin anew.
  void compare(const std::map<std::string, std::string>& names, const json& logged, size_t step,
               Comparison& comparison);
  // Clears after an update, of which TRL logs nothing later.
  void clear() { sums_.clear(); }

 private:
  std::map<std::string, std::pair<double, double>> sums_;  // our name -> sum, number of reports
};

}  // namespace collimate::golden
