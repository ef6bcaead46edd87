#include "collimate/base/nearest_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "collimate/base/edit_distance.h"

namespace collimate::base {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory.empty() ? "." : directory, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  return names;
}

}  // namespace

std::string nearest_path(const fs::path& missing) {
  std::error_code ignored;
  fs::path found;
  bool changed = false;
  for (const fs::path& name : missing) {
    if (fs::exists(found / name, ignored)) {
      found /= name;
      continue;
    }
    const std::string near = changed ? "" : nearest(name.string(), names_in(found));
    if (near.empty()) return "";
    found /= near;
    changed = true;
  }
  return changed && fs::exists(found, ignored) ? fmt::format("{}, which is there", found.string()) : "";
}

std::string directory_below(const fs::path& directory, const std::string& file) {
  std::vector<std::string> names = names_in(directory);
  std::ranges::sort(names);
  std::error_code ignored;
  for (const std::string& name : names)
    if (fs::exists(directory / name / file, ignored))
      return fmt::format("{}, which has {}", (directory / name).string(), file);
  return "";
}

}  // namespace collimate::base
