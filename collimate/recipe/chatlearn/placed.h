#pragma once

#include <nlohmann/json.hpp>

#include "collimate/recipe/chatlearn/source.h"

namespace collimate::recipe::chatlearn {

// Returns the keys of our config that say where the models of a recipe are, by ChatLearn's rules
// (chatlearn/schedule/resource_manager.py of version 1.0.3). A model in no colocation group has devices of its own.
// Models of a group share as many devices as its largest has, with smaller ones side by side where together they fill
// them. The keys are devices and tp, pp, ep, cp, cp_kind, zero where all models have the same devices and layout, and
// otherwise a placement with groups; none where no model has devices. `models`: each of ours with the one that it is
// made of. Throws InputError for a group of unknown models or a layout that does not divide its devices.
nlohmann::ordered_json placed(const Source& source, const std::vector<std::pair<std::string, const Model*>>& models);

}  // namespace collimate::recipe::chatlearn
