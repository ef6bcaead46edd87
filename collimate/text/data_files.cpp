#include "collimate/text/data_files.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "collimate/base/error.h"
#include "collimate/base/nearest_path.h"
#include "collimate/text/arrow/arrow_files.h"
#include "collimate/text/files.h"

namespace collimate::text {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;

const std::map<std::string, std::string>& formats() {
  static const std::map<std::string, std::string> all = {
      {".jsonl", "jsonl"}, {".ndjson", "jsonl"}, {".json", "json"}, {".parquet", "parquet"},
      {".arrow", "arrow"}, {".csv", "csv"},      {".tsv", "tsv"},   {".txt", "text"}};
  return all;
}

// ".jsonl.gz" of a compressed file.
std::string ending_of(const fs::path& path) {
  return (is_compressed(path.string()) ? path.stem().extension().string() : "") + path.extension().string();
}

std::vector<std::string> endings() {
  std::vector<std::string> all;
  for (const auto& [ending, format] : formats())
    if (format != "text") all.push_back(ending);  // few texts are data
  return all;
}

bool is_data(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string format = format_of(path.string());
  constexpr std::array kOfDatasets = {"dataset_info.json", "dataset_dict.json"};
  return !name.starts_with('.') && std::ranges::count(kOfDatasets, name) == 0 &&
         std::ranges::any_of(formats(), [&](const auto& known) { return known.second == format; });
}

// The files that `datasets` lists in state.json.
std::vector<std::string> saved_files(const fs::path& directory) {
  const std::string state = directory / "state.json";
  const nlohmann::json listed = read_json_file(state);
  std::vector<std::string> files;
  for (const auto& file : listed.value("_data_files", nlohmann::json::array())) {
    if (!file.is_object() || !file.contains("filename") || !file["filename"].is_string())
      throw InputError(expectation(state, "_data_files of {\"filename\": NAME}", file.dump()));
    files.push_back(directory / file["filename"].get<std::string>());
  }
  if (files.empty()) throw InputError(expectation(state, "names of files in _data_files", "none"));
  return files;
}

// Folders of a directory that have data in them, for a message.
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
    throw InputError(expectation("data " + path,
                                 "data files in the directory (.jsonl .json .csv .tsv .parquet .arrow .txt)", "none",
                                 folders_with_data(path)));
  const auto other =
      std::ranges::find_if(files, [&](const std::string& file) { return format_of(file) != format_of(files.front()); });
  if (other != files.end())
    throw InputError(expectation("data " + path, "data files of one format in the directory",
                                 files.front() + " and " + *other,
                                 fmt::format("a pattern, {}/*{}", path, ending_of(*other))));
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

}  // namespace

std::string format_of(const std::string& path) {
  fs::path named = path;
  if (is_compressed(path)) named.replace_extension();
  const std::string extension = named.extension().string();
  const auto found = formats().find(extension);
  return found == formats().end() ? extension : found->second;
}

std::vector<std::string> data_files(const std::string& path) {
  if (fs::is_directory(path)) return files_of_directory(path);
  if (fs::exists(path)) return {path};
  if (path.find_first_of("*?[") == std::string::npos)
    throw InputError(expectation("data " + path, "a file", "none there", base::nearest_file(path, endings())));
  std::vector<std::string> files = matches(path);
  if (files.empty()) throw InputError(expectation("data " + path, "files that match the pattern", "none"));
  return files;
}

}  // namespace collimate::text
