#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "collimate/rlhf/reward/rules.h"

namespace collimate::rlhf {

// Returns, for tests, the rule of that name, made from an entry of those options.
inline Rule rule_named(const std::string& name, const nlohmann::json& options = {}) {
  return find_rule(name, "test").make(options.is_null() ? nlohmann::json::object() : options);
}

// Gives the rule's score of a completion beside that ground truth.
inline double value(const std::string& rule, const nlohmann::json& options, const std::string& completion,
                    nlohmann::json truth) {
  return rule_named(rule, options)({1, "", completion, {{"ground_truth", std::move(truth)}}}).value;
}

}  // namespace collimate::rlhf
