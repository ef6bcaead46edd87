#pragma once

#include <optional>
#include <string>
#include <vector>

namespace collimate::report {

// A Change compares a noisy number's mean over a run's first tenth with that of its last, of one value or more each.
struct Change {
  double before = 0, after = 0;
  size_t part = 0;  // values in each mean
  size_t count = 0;

  // "means of the first and the last 5 of 50 iterations", or "first and last of 8 iterations" where a tenth is one
  // value.
  std::string basis() const;
};

// Nothing without values.
std::optional<Change> change_over(const std::vector<double>& values);

}  // namespace collimate::report
