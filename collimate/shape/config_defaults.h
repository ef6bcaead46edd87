#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collimate::shape {

// Returns the config with numbers for keys that it leaves out, where the defaults of the family's class in transformers
// 5.23 differ from those that most families share (usual_config.h). A key that is null counts as given.
nlohmann::json with_defaults(nlohmann::json config, const std::string& family);

}  // namespace collimate::shape
