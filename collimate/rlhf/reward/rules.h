#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/section.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// A rule's result for one sample: a number, alone or with the steps that it came from or the answer that it judged (see
// RewardResult).
struct Score {
  Score(double all) : value(all) {}  // NOLINT(google-explicit-constructor): most rules return a number
  Score(double all, std::vector<StepReward> by_step) : value(all), steps(std::move(by_step)) {}
  double value = 0;
  std::vector<StepReward> steps;
  std::optional<std::string> answer;
};

// A rule is a pure function of one sample.
using Rule = std::function<Score(const RewardSample&)>;

// A file of this folder describes its rule by this entry. `section` makes a section with the keys of an entry in a
// config: those of RuleSection and the rule's own. `make` reads an entry by read_entry of that section (RuleSection
// itself if the rule has no keys of its own), which refuses unknown keys.
struct RuleEntry {
  std::string name;
  std::string summary;  // one line that says which sample gets 1
  std::unique_ptr<base::Section> (*section)();
  Rule (*make)(const nlohmann::json& entry);
};

// Returns all rules, in the order in which messages print them. The names that a config may use and their help follow
// from this list.
const std::vector<RuleEntry>& rules();
// Returns the rule of that name. Throws InputError, for `where`, naming the known ones, if there is none.
const RuleEntry& find_rule(const std::string& name, const std::string& where);

// Makes a reward from a C++ function of one sample, a rule or a user's own. An exception from it is that sample's
// failure. `pure` is Reward::pure.
std::unique_ptr<Reward> function_reward(Rule rule, bool pure = false);

// Returns the value of an arithmetic expression over + - * / // ** and parentheses as Python's eval reads it, in
// doubles: whole numbers are exact below 2^53. Throws InputError for anything else, and for division by zero, complex
// values and values beyond the range of double.
double evaluate_arithmetic(const std::string& text);

}  // namespace collimate::rlhf
