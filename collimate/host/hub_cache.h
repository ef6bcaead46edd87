#pragma once

#include <filesystem>
#include <string>

namespace collimate::host {

// Hugging Face's local cache: HF_HUB_CACHE, else hub/ of HF_HOME, else ~/.cache/huggingface/hub.
std::filesystem::path hub_cache();
// "org/model", or "model" as the oldest are called: names of letters, digits, '-', '_' and '.' that begin with no dot.
bool is_hub_id(const std::string& name);
// A model as a user names it to the directory to read. A hub id where no such directory is and the cache has that model
// becomes the snapshot that its `main` names; any other name stays. Nothing is downloaded.
std::string model_directory(const std::string& name);
// How to get a hub id, which is not there, for an error; "" for a name that is none of a hub's.
std::string hub_remedy(const std::string& name);

}  // namespace collimate::host
