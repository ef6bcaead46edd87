#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// What a rule says of a sample: a number alone, or with the steps that it came from (see RewardResult).
struct Score {
  Score(double all) : value(all) {}  // NOLINT(google-explicit-constructor): most rules return a number
  Score(double all, std::vector<StepReward> by_step) : value(all), steps(std::move(by_step)) {}
  double value = 0;
  std::vector<StepReward> steps;
};

// A rule: a pure function of one sample. Options are the keys beside `rule` in the config.
using Rule = std::function<Score(const RewardSample&)>;
using MakeRule = std::function<Rule(const nlohmann::json& options)>;

// The one list of rules, in the order in which messages print them.
const std::vector<std::pair<std::string, MakeRule>>& rules();

// A reward from a C++ function of one sample, a rule or a user's own; an exception is that sample's failure. `pure`:
// see Reward.
std::unique_ptr<Reward> function_reward(Rule rule, bool pure = false);

// The number after "####" or, failing that, the last number of the text, without commas and currency signs; "" when
// there is none.
std::string final_number(const std::string& text);

// Value of an arithmetic expression over + - * / and parentheses; the numbers used are appended. Throws InputError on
// anything else, including division by zero.
double evaluate_arithmetic(const std::string& text, std::vector<double>& numbers);

Rule gsm8k_rule(const nlohmann::json& options);  // {format_score: 0} 1 when the final number equals the ground truth's
Rule countdown_rule(
    const nlohmann::json& options);  // {format_score: 0.1} TinyZero: <answer> uses each number once and hits target
Rule exact_rule(const nlohmann::json& options);  // {field: ground_truth, strip: true} 1 when equal
Rule regex_rule(const nlohmann::json& options);  // {pattern: "…"} 1 when it is found (ECMAScript syntax)
// {separator: ",", end: "", unfinished_weight: 0.9} Positions that equal the ground truth's ÷ max(N, produced); without
// the end, times unfinished_weight. Its steps are the parts: each adds what it changes in the reward up to it.
Rule sequence_rule(const nlohmann::json& options);
// {unfinished_weight: 0.9} The same with the prompt "FIRST,SECOND:MAX,N": wanted are N numbers, each the one before it
// plus (SECOND - FIRST), modulo MAX; unfinished is a completion that was cut off.
Rule digit_sequence_rule(const nlohmann::json& options);

}  // namespace collimate::rlhf
