#include "collimate/text/data_files.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/base/nearest_path.h"
#include "collimate/host/hub_cache.h"
#include "collimate/text/data_formats.h"
#include "collimate/text/files.h"

namespace collimate::text {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;

bool is_data(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::array kOfDatasets = {"dataset_info.json", "dataset_dict.json"};
  return !name.starts_with('.') && std::ranges::count(kOfDatasets, name) == 0 && format_of(path.string());
}

// Returns the files that `datasets` lists in state.json.
std::vector<std::string> saved_files(const fs::path& directory) {
  const std::string state = directory / "state.json";
  const nlohmann::json listed = read_json_file(state);
  if (!listed.is_object()) throw InputError(expectation(state, "a JSON object", listed.type_name()));
  std::vector<std::string> files;
  for (const auto& file : listed.value("_data_files", nlohmann::json::array())) {
    if (!file.is_object() || !file.contains("filename") || !file["filename"].is_string())
      throw InputError(expectation(state, "_data_files of {\"filename\": NAME}", file.dump()));
    files.push_back(directory / file["filename"].get<std::string>());
  }
  if (files.empty()) throw InputError(expectation(state, "names of files in _data_files", "none"));
  return files;
}

// Returns the folders of a directory that have data in them, for a message.
std::string folders_with_data(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.is_directory() && std::ranges::any_of(fs::directory_iterator(entry.path()),
                                                    [](const auto& file) { return is_data(file.path()); }))
      names.push_back(entry.path().string());
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " or ") + name;
  return text;
}

std::vector<std::string> files_of_directory(const std::string& path) {
  if (file_exists(path + "/state.json")) return saved_files(path);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_regular_file() && is_data(entry.path())) files.push_back(entry.path().string());
  std::ranges::sort(files);
  if (files.empty())
    throw InputError(expectation("data " + path, fmt::format("data files in the directory ({})", format_endings()),
                                 "none", folders_with_data(path)));
  const auto other =
      std::ranges::find_if(files, [&](const std::string& file) { return format_of(file) != format_of(files.front()); });
  if (other != files.end())
    throw InputError(expectation("data " + path, "data files of one format in the directory",
                                 files.front() + " and " + *other,
                                 fmt::format("a pattern, {}/*{}", path, data_ending(*other))));
  return files;
}

std::vector<std::string> matches(const std::string& pattern) {
  glob_t found = {};
  glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files;
  for (size_t i = 0; i < found.gl_pathc; ++i)
    if (fs::is_regular_file(found.gl_pathv[i])) files.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  return files;
}

// Says how a hub's data set can be brought here, for a path that may be the name of one: "org/name"; "" for any other.
std::string hub_data_remedy(const std::string& path) {
  const std::optional<host::HubName> hub = host::hub_name(path);
  if (!hub || std::ranges::count(hub->model, '/') != 1 || format_of(path) || fs::exists(fs::path(path).parent_path()))
    return "";
  const size_t slash = hub->model.find('/');
  const std::string organisation = hub->model.substr(0, slash), name = hub->model.substr(slash + 1);
  if (const fs::path cached = host::hub_cache() / ("datasets--" + organisation + "--" + name); fs::exists(cached))
    return "the path of its files, which Hugging Face's cache has in " + (cached / "snapshots").string();
  const std::string revision = hub->revision == host::kMain ? "" : " --revision " + hub->revision;
  return fmt::format("hf download {} --repo-type dataset{} --local-dir {}, and then the path of its files in {}/",
                     hub->model, revision, name, name);
}

[[noreturn]] void throw_no_file(const std::string& path) {
  const std::string of_hub = hub_data_remedy(path);
  if (of_hub.empty())
    throw InputError(
        expectation("data " + path, "a file", "nothing of that name", base::nearest_file(path, likely_endings())));
  throw InputError(expectation("data " + path,
                               "a file or a directory of data files, as data sets of a hub are not "
                               "downloaded",
                               "nothing of that name", of_hub));
}

}  // namespace

std::vector<std::string> data_files(const std::string& path) {
  if (fs::is_directory(path)) return files_of_directory(path);
  if (fs::exists(path)) return {path};
  if (path.find_first_of("*?[") == std::string::npos) throw_no_file(path);
  std::vector<std::string> files = matches(path);
  if (files.empty()) throw InputError(expectation("data " + path, "files that match the pattern", "none"));
  return files;
}

}  // namespace collimate::text
