#pragma once

#include <string>

#include "collimate/model/weights.h"

namespace collimate::model {

// Writes the adapters as PEFT does, without the model: adapter_config.json and adapter_model.safetensors, with a
// trained score head and modules that are trained whole. `base_model` is the directory or name of the model that they
// belong to. The weights must have adapters. All ranks call it, and one writes.
void save_peft(const Weights& weights, const std::string& directory, const std::string& base_model);

}  // namespace collimate::model
