#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// These functions are for rewards that a program brings along; the rules that ship with Collimate are in rules.cpp.

// Makes a reward from its entry in a config's `reward:` list.
using MakeReward = std::function<std::unique_ptr<Reward>(const nlohmann::json& entry)>;

// Makes a reward written in C++ known to configs as {function: NAME}. `make` reads the entry's own options from it; the
// caller reads weight, on_error and deterministic (see deterministic_reward). Call it before a run starts, in every
// process that works for the run. Thread-safe. Throws InputError when the name is taken.
void register_reward(const std::string& name, MakeReward make);

// Makes the name free again; a run that has made its rewards keeps them. Does nothing if the name is free. Thread-safe.
void unregister_reward(const std::string& name);

// Makes the reward registered under that name. Thread-safe. Throws InputError, naming the known ones, if there is none.
std::unique_ptr<Reward> registered_reward(const std::string& name, const nlohmann::json& entry);

}  // namespace collimate::rlhf
