#include "collimate/recipe/model_files.h"

#include <set>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/checksum.h"
#include "collimate/host/mapped_file.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;

constexpr const char* kModels = "models.json";

// model.safetensors, or the shards that the directory's index names.
std::set<fs::path> weight_paths(const fs::path& directory) {
  const fs::path index = directory / "model.safetensors.index.json";
  if (!fs::exists(index)) return {directory / "model.safetensors"};
  std::set<fs::path> paths = {index};
  const auto shards = nlohmann::json::parse(host::read_file(index), nullptr, false);
  if (!shards.is_object() || !shards.contains("weight_map")) return paths;
  for (const nlohmann::json& shard : shards["weight_map"])
    if (shard.is_string()) paths.insert(directory / shard.get<std::string>());
  return paths;
}

std::string describe(const nlohmann::json& files, const std::string& path) {
  const auto found = files.find(path);
  if (found == files.end()) return "no such file";
  return fmt::format("{} bytes with CRC-32C {}", found->at("bytes").get<int64_t>(),
                     found->at("crc32c").get<std::string>());
}

}  // namespace

std::map<std::string, bool> model_directories(const Plan& plan) {
  std::map<std::string, bool> directories;
  for (const auto& [name, module] : plan.modules) {
    if (!module.parameters.contains("path")) continue;
    const bool reads = !module.parameters.value("from_scratch", false);
    const auto [entry, fresh] = directories.try_emplace(module.parameters.at("path").get<std::string>(), reads);
    if (!fresh) entry->second = entry->second || reads;
  }
  return directories;
}

nlohmann::json weight_files(const Plan& plan) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [directory, reads] : model_directories(plan)) {
    if (!reads) continue;
    for (const fs::path& path : weight_paths(directory)) {
      if (!fs::is_regular_file(path)) continue;
      const host::MappedFile file(path);
      files[path.string()] = {{"bytes", file.size()}, {"crc32c", fmt::format("{:08x}", host::crc32c(file.bytes()))}};
    }
  }
  return files;
}

void keep_weight_files(const nlohmann::json& files, const fs::path& run) {
  const std::string text = files.dump(2) + "\n";
  if (files.empty() || (fs::exists(run / kModels) && host::read_file(run / kModels) == text)) return;
  host::write_file_atomically(run / kModels, text);
}

void check_weight_files(const nlohmann::json& files, const fs::path& run) {
  const fs::path kept = run / kModels;
  if (!fs::exists(kept)) return;
  const auto before = nlohmann::json::parse(host::read_file(kept), nullptr, false);
  if (!before.is_object()) throw InputError(expectation(kept.string(), "a JSON object", "something else"));
  nlohmann::json all = before;
  all.update(files);
  for (const auto& [path, ignored] : all.items())
    if (const std::string then = describe(before, path), now = describe(files, path); then != now)
      throw InputError(expectation(path, fmt::format("what {} began with, {}", run.string(), then), now,
                                   "that file again, or another --output"));
}

}  // namespace collimate::recipe
