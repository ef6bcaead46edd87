#pragma once

#include <nlohmann/json.hpp>

#include "collimate/recipe/config.h"

namespace collimate::recipe {

// Returns the entry of the environment in the config's `reward`, with which its samples are drawn; null for none.
// Throws InputError for two of them, and for turns that may be longer than all turns together.
nlohmann::json gym_entry(const Config& config);

// Throws InputError where a list of rewards has an environment other than that of `reward`.
void check_gym_entries(const Config& config, const nlohmann::json& rewards);

}  // namespace collimate::recipe
