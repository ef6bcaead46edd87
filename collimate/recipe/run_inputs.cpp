#include "collimate/recipe/run_inputs.h"

#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/checksum.h"
#include "collimate/host/mapped_file.h"
#include "collimate/model/safetensors.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;

constexpr const char* kModels = "models.json";

bool is_data(const nlohmann::json& input) { return input.contains("fingerprint"); }

std::string describe(const nlohmann::json& inputs, const std::string& name) {
  const auto found = inputs.find(name);
  if (found == inputs.end()) return "no such file";
  if (is_data(*found))
    return fmt::format("{} rows with fingerprint {}", found->at("rows").get<int64_t>(),
                       found->at("fingerprint").get<std::string>());
  return fmt::format("{} bytes with CRC-32C {}", found->at("bytes").get<int64_t>(),
                     found->at("crc32c").get<std::string>());
}

void add_file(const std::string& path, nlohmann::json& inputs) {
  if (!fs::is_regular_file(path)) return;
  const host::MappedFile file(path);
  inputs[path] = {{"bytes", file.size()}, {"crc32c", fmt::format("{:08x}", host::crc32c(file.bytes()))}};
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

nlohmann::json run_inputs(const Plan& plan, const RunData& data) {
  nlohmann::json inputs = data.fingerprints;
  for (const auto& [directory, reads] : model_directories(plan)) {
    if (!reads) continue;
    for (const auto& [path, tensors] : model::weight_files(directory)) add_file(path, inputs);
  }
  return inputs;
}

void keep_inputs(const nlohmann::json& inputs, const fs::path& run) {
  const std::string text = inputs.dump(2) + "\n";
  if (fs::exists(run / kModels) && host::read_file(run / kModels) == text) return;
  host::write_file_atomically(run / kModels, text);
}

void check_inputs(const nlohmann::json& inputs, const fs::path& run) {
  const fs::path kept = run / kModels;
  if (!fs::exists(kept)) return;
  const auto before = base::parse_json(host::read_file(kept), kept.string(), 1);
  if (!before.is_object()) throw InputError(expectation(kept.string(), "a JSON object", "something else"));
  nlohmann::json all = before;
  all.update(inputs);
  for (const auto& [name, input] : all.items()) {
    if (!before.contains(name) && is_data(input)) continue;  // earlier versions kept none
    if (const std::string then = describe(before, name), now = describe(inputs, name); then != now)
      throw InputError(
          expectation(name, fmt::format("what {} began with, {}", run.string(), then), now,
                      fmt::format("that {} again, or another --output", is_data(input) ? "data" : "file")));
  }
}

}  // namespace collimate::recipe
