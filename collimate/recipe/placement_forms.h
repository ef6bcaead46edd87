#pragma once

#include <optional>

#include "collimate/graph/placement.h"
#include "collimate/recipe/page.h"

namespace collimate::recipe {

// Whether a config's placement is a name that takes `devices` as they come: flattening, interleaving or separation.
bool is_form(const Config& config);

// The placement of `interleaving`, `separation` or {separation: N} (N devices train) or {separation: SHARE} (that share
// of them does, half by default), on so many `devices`; nothing where the config says another. Devices that train the
// same pieces share what `zero` says. InputError where the devices are too few.
std::optional<graph::Placement> placement_of_form(const Config& config, const Plan& plan);

}  // namespace collimate::recipe
