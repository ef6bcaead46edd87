#pragma once

#include <string>

namespace collimate::host {

// Says whether a directory is one of PEFT's with adapters (adapter_config.json), which belong to a model that lies
// elsewhere. Throws InputError when it holds the weights of a whole model too, as either could be meant.
bool holds_adapters(const std::string& directory);
// Returns the name of that model, base_model_name_or_path of the directory's adapter_config.json. Throws InputError
// where it names none.
std::string base_model_name(const std::string& directory);
// Returns the base model's directory, which is `directory` itself when it has no adapters. Throws InputError where the
// name is neither a directory nor in the local hub cache.
std::string base_directory(const std::string& directory);

}  // namespace collimate::host
