#include "collimate/host/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "collimate/host/file_io.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;

// "" where the environment has none.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

bool is_hub_id(const std::string& name) {
  const size_t slash = name.find('/');
  const std::string model = slash == std::string::npos ? name : name.substr(slash + 1);
  if (slash == 0 || model.empty() || name[0] == '.' || model[0] == '.') return false;
  return std::ranges::count(name, '/') <= 1 && std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '/';
         });
}

fs::path hub_cache() {
  if (const std::string cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  return fs::path(variable("HOME")) / ".cache/huggingface/hub";
}

std::string model_directory(const std::string& name) {
  std::error_code ignored;
  if (!is_hub_id(name) || fs::exists(name, ignored)) return name;
  const size_t slash = name.find('/');
  const std::string folder = slash == std::string::npos ? name : name.substr(0, slash) + "--" + name.substr(slash + 1);
  const fs::path model = hub_cache() / ("models--" + folder);
  if (!fs::is_regular_file(model / "refs/main", ignored)) return name;
  std::string commit = read_file(model / "refs/main");
  std::erase_if(commit, [](unsigned char c) { return std::isspace(c) != 0; });
  const fs::path snapshot = model / "snapshots" / commit;
  return !commit.empty() && fs::is_directory(snapshot, ignored) ? snapshot.string() : name;
}

std::string hub_remedy(const std::string& name) {
  if (!is_hub_id(name)) return "";
  return fmt::format(
      "--download, or hf download {}: nothing is downloaded unasked, and the local cache {} does not have it", name,
      hub_cache().string());
}

}  // namespace collimate::host
