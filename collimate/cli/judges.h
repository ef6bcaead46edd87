#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/recipe/check_rewards.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::cli {

// A flag's value that is a name or, in braces, a map in YAML or JSON: what a config would have in its place.
// InputError, for `where`, for braces that hold neither.
nlohmann::json name_or_map(const std::string& text, const std::string& where);

// The values of --reward as a config's `reward:` list, each option at its default where it is left out: a rule's name,
// FILE.py or FILE.py:FUNCTION, or an entry in braces, "{rule: regex, pattern: '^4'}". Null for none. InputError as
// rlhf::resolved_rewards.
nlohmann::json rewards_of(const std::vector<std::string>& values);

// The rewards of a list on completions.
class Judges {
 public:
  // `list`: as rewards_of gives it, not null.
  explicit Judges(const nlohmann::json& list);
  // Tries them on the first rows of `data`, "--data" or "--prompt", as rewards see them. InputError where they cannot
  // judge.
  void try_on(const std::string& data, const recipe::TruthRows& rows) const;
  // The rewards of each sample together; nothing where on_error drops it. RunError where on_error stops.
  std::vector<std::optional<double>> score(const std::vector<rlhf::RewardSample>& samples);
  // Warns of rewards that failed so far: how many, and the first.
  void warn_of_failures() const;

 private:
  std::vector<rlhf::RewardSpec> rewards_;
  int64_t errors_ = 0;
  std::string first_error_;
};

// This is the help text of --reward.
constexpr const char* kRewardHelp =
    "how completions are judged: a rule's name, FILE.py:FUNCTION (or FILE.py, of which it takes score), or an entry of "
    "a "
    "config's reward list in braces, "
    "'{rule: regex, pattern: ^4}'; several are added up";

}  // namespace collimate::cli
