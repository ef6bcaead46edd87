#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// Rewards that a program brings along; a rule that ships with Collimate is in rules.cpp.

// Makes a reward from its entry in a config's `reward:` list.
using MakeReward = std::function<std::unique_ptr<Reward>(const nlohmann::json& entry)>;

// Makes a reward written in C++ known to configs as {function: NAME}; `make` reads options of its own from the entry
// (weight, on_error and deterministic are read for it; see deterministic_reward). Call it before a run starts, in every
// process that works for the run. Thread-safe. InputError when the name is taken.
void register_reward(const std::string& name, MakeReward make);

// Makes the name free again; a run that has its rewards keeps them. Nothing where it is free. Thread-safe.
void unregister_reward(const std::string& name);

// InputError naming the known ones when nothing is registered under that name.
std::unique_ptr<Reward> registered_reward(const std::string& name, const nlohmann::json& entry);

}  // namespace collimate::rlhf
