#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::recipe::chatlearn {

// Says which part a model has in ChatLearn's flows.
enum class Role { kPolicy, kPolicyTrainer, kReference, kReward, kValue, kValueTrainer, kRule };

// Maps ChatLearn's keys that mean the same to the key that they have here.
struct Row {
  std::string_view section;  // "runtime", "environment", a role ("policy", "policy_trainer", …) or "model" for any
  std::string_view names;    // one or more, divided by spaces; "lora.*" for all that begin so
  std::string_view key;      // ours, {} in it for the model; "" where there is none
  std::string_view remark = "";
  // Converts their value to ours. Without a function it stays theirs. A discarded result says that another key decides,
  // as the remark says.
  nlohmann::json (*convert)(const nlohmann::json& theirs) = nullptr;
};

std::span<const Row> rows();

// Returns whether a value is as good as none: null, "", false or [].
bool is_no(const nlohmann::json& value);

// Returns whether a row of any section has the name.
bool is_known(std::string_view name);

// Returns the parts of a text between dividers, without empty ones.
std::vector<std::string> parts(std::string_view text, char divider);

// Returns the row of a key, null for a key that is not known. A role's own rows win over those of any model.
const Row* find_row(std::string_view section, std::string_view name);

}  // namespace collimate::recipe::chatlearn
