#include "collimate/cli/this_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/cli/calibrate_fit.h"
#include "collimate/cli/calibrate_runs.h"
#include "collimate/cli/quickstart.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/checksum.h"
#include "collimate/host/cpu.h"
#include "collimate/host/environment.h"
#include "collimate/host/file_io.h"
#include "collimate/host/scratch_directory.h"
#include "collimate/recipe/summary.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;
namespace plan_ = collimate::plan;

// Two widths are measured, so that a fit can separate a token's constant cost from the cost that grows with the width.
struct MeasuredModel {
  int64_t width, intermediate, prompts;
};
constexpr MeasuredModel kModels[] = {{128, 352, 8}, {320, 880, 4}};

// Returns the file that keeps the constants; "" if neither XDG_CACHE_HOME nor HOME is set.
fs::path cache_file(int64_t devices) {
  fs::path directory = host::environment_variable("XDG_CACHE_HOME");
  if (const std::string home = host::environment_variable("HOME"); directory.empty() && !home.empty())
    directory = fs::path(home) / ".cache";
  if (directory.empty()) return {};
  const std::string machine = fmt::format("{} {} {}", host::cpu_model(), static_cast<int>(tensor::instruction_set()),
                                          recipe::versions().at("collimate").get<std::string>());
  const uint32_t key = host::crc32c(std::as_bytes(std::span(machine)));
  return directory / "collimate" / fmt::format("cpu-{:08x}-{}.yaml", key, devices);
}

std::optional<plan_::Machine> kept_in(const fs::path& file) {
  if (file.empty() || !fs::is_regular_file(file)) return std::nullopt;
  try {
    return plan_::parse_machine(host::read_file(file), file.string());
  } catch (const base::InputError&) {
    return std::nullopt;
  }
}

// Writes a config of a short GRPO run with a reference, and the files that it names, below `directory`. Returns its
// path.
std::string write_run(const MeasuredModel& model, const fs::path& directory) {
  write_quickstart_task({.demonstrations = 2, .problems = 512, .held_out = 2, .validation = 2}, directory.string());
  const fs::path start = directory / "start";
  nlohmann::ordered_json shape = nlohmann::ordered_json::parse(host::read_file(start / "config.json"));
  shape["hidden_size"] = model.width;
  shape["intermediate_size"] = model.intermediate;
  shape["head_dim"] = model.width / shape.at("num_attention_heads").get<int64_t>();
  host::write_file_atomically(start / "config.json", shape.dump());
  const std::string path = start.string();
  const nlohmann::json from = {{"path", path}, {"from_scratch", true}};
  const nlohmann::json config = {
      {"recipe", "grpo"},
      {"models", {{"policy", from}, {"reference", from}}},
      {"data", {{"train", (directory / "problems.jsonl").string()}}},
      {"reward", {{{"rule", "exact"}}}},
      {"algorithm", {{"beta", 0.04}}},
      {"rollout", {{"prompts_per_iteration", model.prompts}, {"samples_per_prompt", 8}, {"completion_tokens", 32}}}};
  const std::string file = (directory / "run.yaml").string();
  host::write_file_atomically(file, config.dump());  // JSON is YAML
  return file;
}

plan_::Machine measure(int64_t devices) {
  std::vector<CalibrationRun> runs;
  for (const MeasuredModel& model : kModels) {
    const host::ScratchDirectory scratch("machine");
    CalibrateOptions options;
    options.config = write_run(model, scratch.path());
    options.iterations = 3;
    options.devices = devices;
    options.quiet = true;
    for (CalibrationRun& run : run_for_calibration(options)) {
      run.name += fmt::format(", width {}", model.width);
      runs.push_back(std::move(run));
    }
  }
  return {found_in(fit(measured_in(runs))), "", "", ""};
}

// Writes the constants to the file and returns "and kept in FILE", or why they are not kept.
std::string keep(const plan_::Machine& machine, int64_t devices, const fs::path& file) {
  if (file.empty()) return "and not kept, as neither XDG_CACHE_HOME nor HOME is set";
  try {
    fs::create_directories(file.parent_path());
    host::write_file_atomically(
        file, plan_::machine_text(
                  machine, {fmt::format("{}, {} of one thread side by side", host::cpu_model(), devices),
                            "measured by `placement: auto` with small models; without this file it measures again"}));
  } catch (const std::exception& error) {
    return fmt::format("and not kept ({})", error.what());
  }
  return "and kept in " + file.string();
}

}  // namespace

ThisMachine this_machine(int64_t devices) {
  devices = std::min<int64_t>(devices, host::core_count());
  const fs::path file = cache_file(devices);
  if (std::optional<plan_::Machine> kept = kept_in(file)) return {std::move(*kept), "read from " + file.string()};
  const double begin = base::now_seconds();
  plan_::Machine machine = measure(devices);
  const double seconds = base::now_seconds() - begin;
  std::string source = fmt::format("measured in {:.1f} s {}", seconds, keep(machine, devices, file));
  return {std::move(machine), std::move(source)};
}

}  // namespace collimate::cli
