#include "collimate/host/base_model.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/host/file_io.h"
#include "collimate/host/hub_cache.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;

constexpr const char* kConfig = "/adapter_config.json";
constexpr const char* kName = "base_model_name_or_path";

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace

bool holds_adapters(const std::string& directory) {
  if (!exists(directory + kConfig)) return false;
  for (const char* whole : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"})
    if (exists(directory + "/" + whole))
      throw InputError(expectation(directory, "a model, or adapters of one",
                                   fmt::format("{} beside adapter_config.json", whole),
                                   "moving the adapters to a directory of their own"));
  return true;
}

std::string base_model_name(const std::string& directory) {
  const std::string path = directory + kConfig;
  const nlohmann::json config = base::parse_json(read_file(path), path, 1);
  if (!config.is_object() || !config.contains(kName) || !config.at(kName).is_string())
    throw InputError(expectation(path, fmt::format("{}: the model that the adapters belong to", kName), "none"));
  return config.at(kName);
}

std::string base_directory(const std::string& directory) {
  if (!holds_adapters(directory)) return directory;
  const std::string name = base_model_name(directory), found = model_directory(name);
  std::error_code ignored;
  if (fs::is_directory(found, ignored)) return found;
  std::string remedy = hub_remedy(name);
  if (remedy.empty()) remedy = "naming the model's directory there";
  throw InputError(
      expectation(directory + kConfig + " " + kName, "a model directory", name + ", which is none", remedy));
}

}  // namespace collimate::host
