#include "collimate/host/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "collimate/host/environment.h"
#include "collimate/host/file_io.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShortestCommit = 4;  // digits of a hash that may stand for it, as in git

// Replaces a leading ~ by HOME.
std::string with_home(const std::string& path) {
  return path == "~" || path.starts_with("~/") ? environment_variable("HOME") + path.substr(1) : path;
}

// Says whether the words between slashes are such as hubs have, which cannot lead out of a directory.
bool are_words(const std::string& text) {
  const auto is_word = [](const std::string& part) {
    return !part.empty() && part.front() != '.' && std::ranges::all_of(part, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
    });
  };
  for (size_t begin = 0;;) {
    const size_t end = text.find('/', begin);
    if (!is_word(text.substr(begin, end - begin))) return false;
    if (end == std::string::npos) return true;
    begin = end + 1;
  }
}

// A Held lists what the cache has completely of a model.
struct Held {
  std::vector<std::string> commits;          // in order
  std::map<std::string, std::string> named;  // commits by branch or tag

  // Returns the commits that a revision may mean.
  std::vector<std::string> meant_by(const std::string& revision) const;
  // Returns names such as "org/model@main": one for each branch and tag, and one for each commit that none of them
  // names.
  std::vector<std::string> names(const std::string& model) const;
};

std::vector<std::string> Held::meant_by(const std::string& revision) const {
  if (const auto found = named.find(revision); found != named.end()) return {found->second};
  std::vector<std::string> begun;
  if (revision.size() < kShortestCommit) return begun;
  std::ranges::copy_if(commits, std::back_inserter(begun),
                       [&](const std::string& commit) { return commit.starts_with(revision); });
  return begun;
}

std::vector<std::string> Held::names(const std::string& model) const {
  std::vector<std::string> all;
  for (const auto& [name, commit] : named) all.push_back(model + "@" + name);
  for (const std::string& commit : commits)
    if (std::ranges::none_of(named, [&](const auto& one) { return one.second == commit; }))
      all.push_back(model + "@" + commit);
  return all;
}

std::string commit_in(const fs::path& reference) {
  std::string commit = read_file(reference);
  std::erase_if(commit, [](unsigned char c) { return std::isspace(c) != 0; });
  return commit;
}

fs::path folder_of(const HubName& name) {
  std::string folder = "models--" + name.model;
  if (const size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  return hub_cache() / folder;
}

// Lists what the cache has of a model, without commits that a download has marked as unfinished.
Held held_of(const HubName& name) {
  Held held;
  std::error_code ignored;
  const fs::path model = folder_of(name), references = model / "refs";
  for (const auto& entry : fs::directory_iterator(model / "snapshots", ignored))
    if (entry.is_directory() && !fs::exists(model / "unfinished" / entry.path().filename()))
      held.commits.push_back(entry.path().filename());
  std::ranges::sort(held.commits);
  for (const auto& entry : fs::recursive_directory_iterator(references, ignored))
    if (entry.is_regular_file())
      if (const std::string commit = commit_in(entry); std::ranges::binary_search(held.commits, commit))
        held.named[entry.path().lexically_relative(references)] = commit;
  return held;
}

}  // namespace

std::optional<HubName> hub_name(const std::string& name) {
  const size_t at = name.find('@');
  HubName parts{name.substr(0, at)};
  if (at != std::string::npos) parts.revision = name.substr(at + 1);
  const bool named = are_words(parts.model) && std::ranges::count(parts.model, '/') <= 1;
  return named && are_words(parts.revision) ? std::optional(parts) : std::nullopt;
}

fs::path hub_cache() {
  static constexpr std::pair<const char*, const char*> kPlaces[] = {
      {"HF_HUB_CACHE", ""}, {"HUGGINGFACE_HUB_CACHE", ""}, {"HF_HOME", "/hub"}, {"XDG_CACHE_HOME", "/huggingface/hub"}};
  for (const auto& [name, below] : kPlaces)
    if (const std::string place = environment_variable(name); !place.empty()) return with_home(place + below);
  return with_home("~/.cache/huggingface/hub");
}

std::string model_directory(const std::string& name) {
  std::error_code ignored;
  const std::optional<HubName> parts = hub_name(name);
  if (!parts || fs::exists(name, ignored)) return name;
  const std::vector<std::string> commits = held_of(*parts).meant_by(parts->revision);
  return commits.size() == 1 ? (folder_of(*parts) / "snapshots" / commits[0]).string() : name;
}

std::string hub_remedy(const std::string& name) {
  const std::optional<HubName> parts = hub_name(name);
  if (!parts) return "";
  const Held held = held_of(*parts);
  if (const auto commits = held.meant_by(parts->revision); commits.size() > 1)
    return fmt::format("more of the hash, which begins several commits of the local cache: {}",
                       fmt::join(commits, ", "));
  const std::vector<std::string> others = held.names(parts->model);
  return fmt::format(
      "--download (it needs PyPI's huggingface_hub), or hf download {}{}: the local cache {} {}", parts->model,
      parts->revision == kMain ? "" : " --revision " + parts->revision, hub_cache().string(),
      others.empty() ? "does not have it" : fmt::format("has of that model only {}", fmt::join(others, ", ")));
}

}  // namespace collimate::host
