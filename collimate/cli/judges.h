#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/recipe/check_rewards.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::cli {

// Reads a flag's value as a config would have it: a name is returned as a string, a text in braces as a map read from
// YAML or JSON. Throws InputError, naming `where`, for a text in braces that is not a map.
nlohmann::json name_or_map(const std::string& text, const std::string& where);

// Returns the values of --reward as a config's `reward:` list with the defaults of omitted options filled in, null for
// no values. A value is a rule's name, FILE.py, FILE.py:FUNCTION, a server's address, or an entry in braces, "{rule:
// regex, pattern: '^4'}". Throws InputError as rlhf::resolved_rewards does, and for an environment.
nlohmann::json rewards_of(const std::vector<std::string>& values);

// Judges score completions by a list of rewards.
class Judges {
 public:
  // Takes a list as rewards_of() returns it; it must not be null.
  explicit Judges(const nlohmann::json& list);
  // Tries the rewards on the first rows of `data` ("--data" or "--prompt", for errors). Throws InputError when they
  // cannot judge these rows.
  void try_on(const std::string& data, const recipe::TruthRows& rows) const;
  // Returns the sum of all rewards for each sample, nothing for a sample that on_error drops. Throws RunError when a
  // reward fails whose on_error stops.
  std::vector<std::optional<double>> score(const std::vector<rlhf::RewardSample>& samples);
  // Logs a warning with the number of failed rewards so far and the first failure, if there was one.
  void warn_of_failures() const;

 private:
  std::vector<rlhf::RewardSpec> rewards_;
  int64_t errors_ = 0;
  std::string first_error_;
};

// This is the help text of --reward.
constexpr const char* kRewardHelp =
    "how completions are judged: a rule's name, FILE.py:FUNCTION (or FILE.py, of which it takes score), the address of "
    "a server (http://…), or an entry of a config's reward list in braces, '{rule: regex, pattern: ^4}'; several are "
    "added up";

}  // namespace collimate::cli
