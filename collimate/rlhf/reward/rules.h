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

// A rule says this of a sample: a number alone, or with the steps that it came from or the answer that it judged (see
// RewardResult).
struct Score {
  Score(double all) : value(all) {}  // NOLINT(google-explicit-constructor): most rules return a number
  Score(double all, std::vector<StepReward> by_step) : value(all), steps(std::move(by_step)) {}
  double value = 0;
  std::vector<StepReward> steps;
  std::optional<std::string> answer;
};

// A rule: a pure function of one sample.
using Rule = std::function<Score(const RewardSample&)>;

// A file of this folder says this of its rule. `section`: the keys of its entry in a config (RuleSection and its own);
// `make` reads the entry by read_entry, where it has no keys of its own as RuleSection: that refuses unknown ones.
struct RuleEntry {
  std::string name;
  std::string summary;  // one line: which sample gets 1
  std::unique_ptr<base::Section> (*section)();
  Rule (*make)(const nlohmann::json& entry);
};

// All rules, in the order in which messages print them. From this list follow what a config may name and its help.
const std::vector<RuleEntry>& rules();
// InputError, for `where`, naming the known ones.
const RuleEntry& find_rule(const std::string& name, const std::string& where);

// A reward from a C++ function of one sample, a rule or a user's own; an exception is that sample's failure. `pure`:
// see Reward.
std::unique_ptr<Reward> function_reward(Rule rule, bool pure = false);

// Value of an arithmetic expression over + - * / // ** and parentheses as Python's eval reads it, in doubles: whole
// numbers are exact below 2^53. InputError for anything else, including division by zero, complex values and such as
// are beyond the range of double.
double evaluate_arithmetic(const std::string& text);

}  // namespace collimate::rlhf
