#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace collimate::host {

// Returns the directory of Hugging Face's local cache, as huggingface_hub's constants.py has it: HF_HUB_CACHE, else
// HUGGINGFACE_HUB_CACHE, its older name, else hub/ of HF_HOME, else huggingface/hub/ of XDG_CACHE_HOME, else
// ~/.cache/huggingface/hub.
std::filesystem::path hub_cache();
inline constexpr const char* kMain = "main";

// A HubName holds the parts of a model's name on a hub: "org/model", or "model" as the oldest are called, and
// "org/model@REVISION".
struct HubName {
  std::string model;
  std::string revision = kMain;  // a branch, a tag, or a commit's hash, which may be cut to four digits
};
// Returns the parts of a hub's name, or nothing for other texts. Words between slashes consist of letters, digits, '-',
// '_' and '.' and do not begin with a dot.
std::optional<HubName> hub_name(const std::string& name);
// Returns the directory to read for a model as a user names it. A hub's name becomes the snapshot of its revision when
// no path of that name exists and the cache has that revision. Any other name is returned as it is, and so is one whose
// hash begins several commits. Nothing is downloaded.
std::string model_directory(const std::string& name);
// Returns for an error how to get a model of a hub whose revision the cache lacks, with the revisions that it has.
// Returns "" for a name that is no hub's.
std::string hub_remedy(const std::string& name);

}  // namespace collimate::host
