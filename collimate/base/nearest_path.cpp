#include "collimate/base/nearest_path.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <limits>
#include <vector>

#include "collimate/base/edit_distance.h"
#include "collimate/base/lower_case.h"

namespace collimate::base {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory.empty() ? "." : directory, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

constexpr size_t kFar = std::numeric_limits<size_t>::max();

// Returns the edits between two names without their endings, because a long ending that both have says nothing. Returns
// 0 when only the endings differ, and kFar when neither name can be meant by the other.
size_t distance_of_names(const std::string& a, const std::string& b) {
  constexpr size_t kShortestBeginning = 4;
  const fs::path left = lower_case(a), right = lower_case(b);
  const std::string stem = left.stem().string(), other = right.stem().string();
  if (stem == other) return 0;
  const std::string ending = left.extension().string();
  if (edit_distance(ending, right.extension().string()) > (ending.empty() ? 0 : 2)) return kFar;
  const size_t shorter = std::min(stem.size(), other.size()), longer = std::max(stem.size(), other.size());
  const size_t edits = edit_distance(stem, other);
  if (edits <= std::max<size_t>(1, stem.size() / 3) && edits < shorter) return edits;
  const bool begins = stem.starts_with(other) || other.starts_with(stem);
  return begins && shorter >= kShortestBeginning ? longer : kFar;
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& names) {
  std::string best;
  size_t least = kFar;
  for (const std::string& candidate : names) {
    const size_t distance = distance_of_names(name, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

bool has_ending(const std::string& name, const std::vector<std::string>& endings) {
  return std::ranges::any_of(endings, [&](const std::string& ending) { return name.ends_with(ending); });
}

// Looks in the directories above a missing file for a file of its name. The path names a directory that is not there.
// Returns the file in words for "try …", or "" when there is none.
std::string above(const fs::path& missing) {
  std::error_code ignored;
  for (fs::path up = missing.parent_path(); up.has_relative_path();) {
    up = up.parent_path();
    if (const fs::path found = up / missing.filename(); fs::is_regular_file(found, ignored))
      return fmt::format("{}, which is there", found.string());
  }
  return "";
}

// Does what nearest_path says, and prefers names with one of these endings.
std::string nearest_of(const fs::path& missing, const std::vector<std::string>& endings) {
  std::error_code ignored;
  fs::path found;
  bool changed = false;
  for (const fs::path& name : missing) {
    if (fs::exists(found / name, ignored)) {
      found /= name;
      continue;
    }
    if (changed) return "";
    const std::vector<std::string> all = names_in(found);
    std::vector<std::string> wanted;
    std::ranges::copy_if(all, std::back_inserter(wanted),
                         [&](const std::string& candidate) { return has_ending(candidate, endings); });
    std::string near = nearest_name(name.string(), wanted);
    if (near.empty()) near = nearest_name(name.string(), all);
    if (near.empty()) return "";
    found /= near;
    changed = true;
  }
  return changed && fs::exists(found, ignored) ? fmt::format("{}, which is there", found.string()) : "";
}

}  // namespace

std::string nearest_path(const fs::path& missing) { return nearest_of(missing, {}); }

std::string nearest_file(const fs::path& missing, const std::vector<std::string>& endings) {
  constexpr size_t kMostShown = 3;
  if (const std::string near = nearest_of(missing, endings); !near.empty()) return near;
  const fs::path directory = missing.parent_path();
  std::error_code ignored;
  if (!directory.empty() && !fs::is_directory(directory, ignored)) {
    const std::string found = above(missing);
    return found.empty() ? fmt::format("another path: there is no directory {}", directory.string()) : found;
  }
  std::vector<std::string> found;
  for (const std::string& name : names_in(directory))
    if (has_ending(name, endings)) found.push_back((directory / name).string());
  if (found.empty())
    return missing.is_absolute() ? "" : fmt::format("a path from {}", fs::current_path(ignored).string());
  const bool more = found.size() > kMostShown;
  found.resize(std::min(found.size(), kMostShown));
  return fmt::format("one that is there: {}{}", fmt::join(found, ", "), more ? ", …" : "");
}

std::string directory_below(const fs::path& directory, const std::string& file) {
  std::error_code ignored;
  for (const std::string& name : names_in(directory))
    if (fs::exists(directory / name / file, ignored))
      return fmt::format("{}, which has {}", (directory / name).string(), file);
  return "";
}

}  // namespace collimate::base
