#pragma once

#include <string>

#include "collimate/model/weights.h"

namespace collimate::model {

// Writes the adapters alone as PEFT does: adapter_config.json and adapter_model.safetensors, with a trained score head.
// `base_model`: directory or name of the model that they belong to. Of weights with adapters.
void save_peft(const Weights& weights, const std::string& directory, const std::string& base_model);

}  // namespace collimate::model
