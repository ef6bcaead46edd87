#pragma once

#include <optional>

#include "collimate/graph/placement.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Returns whether a config's placement takes any number of `devices`: flattening, interleaving or separation.
bool is_form(const Config& config);

// Returns the placement of `interleaving`, `separation`, {separation: N} (N devices train) or {separation: SHARE} (that
// share of the devices trains, half by default) on the config's `devices`; nothing where the config says another.
// Devices that train the same pieces share what `zero` says. Throws InputError where the devices are too few.
std::optional<graph::Placement> placement_of_form(const Config& config, const Plan& plan);

}  // namespace collimate::recipe
