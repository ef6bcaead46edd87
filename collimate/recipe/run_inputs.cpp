#include "collimate/recipe/run_inputs.h"

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/log.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/base_model.h"
#include "collimate/host/checksum.h"
#include "collimate/host/mapped_file.h"
#include "collimate/model/safetensors.h"
#include "collimate/rlhf/reward/reward_kinds.h"
#include "collimate/text/tokenizer.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelsFile = "models.json";
constexpr const char* kPlacement = "placement";  // a kind that earlier versions kept: it may change

// Returns the kind of an entry: "data", "weights" (for an entry that says no kind), "model", "reward" or "plugin".
std::string kind_of(const nlohmann::json& input) {
  return input.contains("fingerprint") ? "data" : input.value("kind", "weights");
}

// Did the run keep inputs of that kind? Runs of earlier versions kept weights alone, or weights and data.
bool kept_kind(const nlohmann::json& kept, const std::string& kind) {
  return kind == "weights" ||
         std::any_of(kept.begin(), kept.end(), [&](const nlohmann::json& input) { return kind_of(input) == kind; });
}

std::string describe(const nlohmann::json& inputs, const std::string& name) {
  const auto found = inputs.find(name);
  if (found == inputs.end()) return "no such file";
  if (kind_of(*found) == "data")
    return fmt::format("{} rows with fingerprint {}", found->at("rows").get<int64_t>(),
                       found->at("fingerprint").get<std::string>());
  return fmt::format("{} bytes with CRC-32C {}", found->at("bytes").get<int64_t>(),
                     found->at("crc32c").get<std::string>());
}

void add_file(const std::string& path, const std::string& kind, nlohmann::json& inputs) {
  if (!fs::is_regular_file(path)) return;
  const host::MappedFile file(path);
  inputs[path] = {{"bytes", file.size()}, {"crc32c", fmt::format("{:08x}", host::crc32c(file.bytes()))}};
  if (kind != "weights") inputs[path]["kind"] = kind;
}

void add_rewards(const Plan& plan, nlohmann::json& inputs) {
  for (const std::string& name : plan.rewards)
    for (const nlohmann::json& entry : plan.modules.at(name).parameters.at("rewards"))
      if (const std::string file = rlhf::reward_file(entry); !file.empty()) add_file(file, "reward", inputs);
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

nlohmann::json file_input(const std::string& path) {
  nlohmann::json inputs = nlohmann::json::object();
  add_file(path, "reward", inputs);
  return inputs;
}

nlohmann::json model_inputs(const std::string& directory, bool weights) {
  nlohmann::json inputs = nlohmann::json::object();
  for (const char* name : text::tokenizer_files()) add_file((fs::path(directory) / name).string(), "model", inputs);
  if (!weights) return inputs;
  if (const std::string base = host::base_directory(directory); base != directory) {
    for (const std::string& path : model::adapter_files(directory)) add_file(path, "weights", inputs);
    inputs.update(model_inputs(base));
    return inputs;
  }
  for (const auto& [path, tensors] : model::weight_files(directory)) add_file(path, "weights", inputs);
  return inputs;
}

nlohmann::json run_inputs(const Plan& plan, const RunData& data) {
  nlohmann::json inputs = data.fingerprints;
  for (const auto& [directory, reads] : model_directories(plan)) inputs.update(model_inputs(directory, reads));
  add_rewards(plan, inputs);
  for (const std::string& plugin : plan.plugins) add_file(plugin, "plugin", inputs);
  return inputs;
}

void keep_inputs(const nlohmann::json& inputs, const fs::path& run) {
  const std::string text = inputs.dump(2) + "\n";
  if (fs::exists(run / kModelsFile) && host::read_file(run / kModelsFile) == text) return;
  host::write_file_atomically(run / kModelsFile, text);
}

void check_inputs(const nlohmann::json& inputs, const fs::path& run, const std::string& anew) {
  const fs::path kept = run / kModelsFile;
  if (!fs::exists(kept)) {
    base::log_warning("{} is gone: files and data are not compared with what the run began with", kept.string());
    return;
  }
  const auto before = base::parse_json(host::read_file(kept), kept.string(), 1);
  if (!before.is_object()) throw base::InputError(base::expectation(kept.string(), "a JSON object", "something else"));
  nlohmann::json all = before;
  all.update(inputs);
  for (const auto& [name, input] : all.items()) {
    const std::string kind = kind_of(input);
    if ((!before.contains(name) && !kept_kind(before, kind)) || kind == kPlacement) continue;
    if (const std::string then = describe(before, name), now = describe(inputs, name); then != now)
      throw base::InputError(base::expectation(
          name, fmt::format("what {} began with, {}", run.string(), then), now + ": it has changed since",
          fmt::format("that {} again, or {}", kind == "data" ? "data" : "file", anew)));
  }
}

}  // namespace collimate::recipe
