#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
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

// Would more training have lowered these losses further? Of four quarters each mean is lower than the one before, the
// last by a twentieth of the first, and by then it is not yet far below that. False for a few losses.
bool still_falls(const std::vector<double>& losses);

// Nothing without values.
std::optional<Change> change_over(const std::vector<double>& values);

// By how much numbers of a training have changed, {name: {before, after}} of those that its metrics.jsonl has. Lines
// that cannot be read are passed over: the run's own report names them.
nlohmann::ordered_json changes_in(const std::filesystem::path& metrics);

}  // namespace collimate::report
