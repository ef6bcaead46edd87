#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace collimate::shape {

// The config with numbers for keys that it leaves out, where those of the family's class in transformers 5.23 are not
// those that most families share (usual_config.h). A key that is null is not left out.
nlohmann::json with_defaults(nlohmann::json config, const std::string& family);

}  // namespace collimate::shape
