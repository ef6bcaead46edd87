#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace collimate::host {

// Hugging Face's local cache, as huggingface_hub's constants.py has it: HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, its
// older name, else hub/ of HF_HOME, else huggingface/hub/ of XDG_CACHE_HOME, else ~/.cache/huggingface/hub.
std::filesystem::path hub_cache();
inline constexpr const char* kMain = "main";

// A name of a hub in its parts: "org/model", or "model" as the oldest are called, and "org/model@REVISION".
struct HubName {
  std::string model;
  std::string revision = kMain;  // a branch, a tag, or a commit's hash, of which four digits may do
};
// Nothing for other names. Words between slashes are of letters, digits, '-', '_' and '.' and begin with no dot.
std::optional<HubName> hub_name(const std::string& name);
// A model as a user names it to the directory to read. A name of a hub where no such directory is and the cache has
// that revision becomes its snapshot; any other stays, and so does a hash that begins several commits. Nothing is
// downloaded.
std::string model_directory(const std::string& name);
// How to get a model of a hub, whose revision is not there, for an error: with the revisions that are. "" for a name
// that is none of a hub's.
std::string hub_remedy(const std::string& name);

}  // namespace collimate::host
