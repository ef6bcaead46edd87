#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collimate/base/section.h"
#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// A form that an entry of a config's `reward:` list may have, as help shows it.
struct RewardForm {
  std::string key;    // says of which kind the entry is: "rule"
  std::string entry;  // "{rule: exact}"
  std::string summary;
  std::unique_ptr<base::Section> section;  // its keys, with defaults
};
// Returns all forms: each rule, then the other kinds.
std::vector<RewardForm> reward_forms();

// Returns the Python file whose code an entry runs; "" where it runs none.
std::string reward_file(const nlohmann::json& entry);

// Makes the reward of one entry, with the name that it has where no other has it. Throws InputError as make_rewards
// does.
RewardSpec make_reward(const nlohmann::json& entry);

}  // namespace collimate::rlhf
