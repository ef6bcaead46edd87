#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::recipe::chatlearn {

// A model's part in ChatLearn's flows.
enum class Role { kPolicy, kPolicyTrainer, kReference, kReward, kValue, kValueTrainer, kRule };

// Keys that mean the same, and the key that they have here.
struct Row {
  std::string_view section;  // "runtime", "environment", a role ("policy", "policy_trainer", …) or "model" for any
  std::string_view names;    // one or more, divided by spaces; "lora.*" for all that begin so
  std::string_view key;      // ours, {} in it for the model; "" where there is none
  std::string_view remark = "";
  // Gives our value of theirs; discarded: another key decides, as the remark says. Null: theirs.
  nlohmann::json (*convert)(const nlohmann::json& theirs) = nullptr;
};

std::span<const Row> rows();

// Whether a value is as good as none.
bool is_no(const nlohmann::json& value);

// Whether a row of any section has it.
bool is_known(std::string_view name);

// Parts of a text between dividers, without empty ones.
std::vector<std::string> parts(std::string_view text, char divider);

// The row of a key; null for a key that is not known. A role's own rows win over those of any model.
const Row* find_row(std::string_view section, std::string_view name);

}  // namespace collimate::recipe::chatlearn
