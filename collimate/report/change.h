#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace collimate::report {

// A Change compares a noisy number's mean over the first tenth of a run with its mean over the last tenth, at least one
// value each.
struct Change {
  double before = 0, after = 0;
  size_t part = 0;  // values in each mean
  size_t count = 0;

  // "means of the first and the last 5 of 50 iterations", or "first and last of 8 iterations" where a tenth is one
  // value.
  std::string basis() const;
};

// Returns whether more training would likely have lowered these losses further: of four quarters each has a lower mean
// than the one before, the last by more than a twentieth of the first quarter's mean, and the last mean is still above
// 0.4 times the first. Returns false for fewer than 12 losses.
bool still_falls(const std::vector<double>& losses);
// Returns whether the last rewards are no larger than the first, in means over a tenth each. Returns false for fewer
// than 10 rewards.
bool has_not_risen(const std::vector<double>& rewards);

// Returns the change over these values; nothing without values.
std::optional<Change> change_over(const std::vector<double>& values);

// Returns {name: {before, after}} for the loss, reward, KL penalty and completion length of a training, as far as its
// metrics.jsonl has them. Lines that cannot be read are passed over: the run's own report names them.
nlohmann::ordered_json changes_in(const std::filesystem::path& metrics);

}  // namespace collimate::report
