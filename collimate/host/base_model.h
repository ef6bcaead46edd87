#pragma once

#include <string>

namespace collimate::host {

// PEFT's directories hold adapters (adapter_config.json), which belong to a model that lies elsewhere. InputError for
// one that holds the weights of a whole model too: it could mean either.
bool holds_adapters(const std::string& directory);
// That model as a directory's base_model_name_or_path names it. InputError where it names none.
std::string base_model_name(const std::string& directory);
// The base model's directory; a directory without adapters is its own. InputError where the name is neither one nor in
// the local hub cache.
std::string base_directory(const std::string& directory);

}  // namespace collimate::host
