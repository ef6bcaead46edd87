#include "collimate/recipe/summary.h"

#include <fmt/ranges.h>
#include <torch/headeronly/version.h>

#include <ctime>
#include <utility>

#include "collimate/base/config.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/host/cpu.h"
#include "collimate/host/memory.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::recipe {
namespace {

// Returns the present second, as "2026-11-24T19:36:22Z".
std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

// Returns what a run's report warns of: which rewards ran without a sandbox, and what the watch has seen.
std::vector<std::string> warnings_of(const RunSoFar& run) {
  std::vector<std::string> out;
  for (const std::string& name : run.plan.rewards)
    for (const nlohmann::json& entry : run.plan.modules.at(name).parameters.at("rewards"))
      if (entry.value("sandbox", "") == rlhf::PythonCodeSection::kNoSandbox)
        out.push_back(fmt::format("reward {} ran without a sandbox (sandbox: none)",
                                  entry.value("python", entry.value("gym", ""))));
  const std::vector<std::string>& seen = run.recorder.watch().warnings();
  out.insert(out.end(), seen.begin(), seen.end());
  return out;
}

// Says what a run's workers took of memory beside what was planned: {"process_start_bytes", "process_peak_bytes",
// "planned_bytes", "peak_bytes", "workers": [MemoryLedger::report]}; sums over the workers of devices and hosts.
nlohmann::ordered_json memory_summary(const flow::RunEnd& end, int64_t process_start_bytes) {
  int64_t planned = 0, peak = 0;
  for (const nlohmann::json& worker : end.memory) {
    planned += worker.at("planned_bytes").get<int64_t>();
    peak += worker.at("peak_bytes").get<int64_t>();
  }
  return {{"process_start_bytes", process_start_bytes},
          {"process_peak_bytes", host::peak_resident_bytes()},
          {"planned_bytes", planned},
          {"peak_bytes", peak},
          {"workers", end.memory}};
}

}  // namespace

nlohmann::ordered_json versions() {
  return {{"collimate", COLLIMATE_VERSION},
          {"libtorch", fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH)},
          {"compiler", fmt::format("gcc {}", __VERSION__)},
          {"instruction_set", std::string(tensor::name_of(tensor::instruction_set()))},
          {"processor", host::cpu_model()}};
}

nlohmann::ordered_json run_summary(const RunSoFar& run) {
  const Recorder& recorder = run.recorder;
  nlohmann::ordered_json final_metrics = nlohmann::ordered_json::object();
  for (const auto& [name, value] : recorder.last().values) final_metrics[name] = value;
  nlohmann::ordered_json told = {{"recipe", run.config.recipe.get()},
                                 {"iterations", run.iterations()},
                                 {"seconds", recorder.seconds()},
                                 {"ended", now_utc()},
                                 {"generates", run.plan.learns_to_stop},
                                 {"seed", run.config.run.seed.get()},
                                 {"config_hash", base::config_hash(run.config)},
                                 {"first_evaluation", recorder.first_evaluation()},
                                 {"last_evaluation", recorder.last_evaluation()},
                                 {"final_metrics", std::move(final_metrics)}};
  told.update(exported_model(run));
  told.update(recorder.totals().summary());
  told["warnings"] = warnings_of(run);
  told["diverged"] = recorder.watch().diverged();
  told["held_out"] = count_held_out(run.plan, run.data);
  told["left_out"] = run.data.left_out;
  told["peak_memory_bytes"] = host::peak_resident_bytes();
  told["memory"] = memory_summary(run.end, run.start_bytes);
  told["versions"] = versions();
  return told;
}

nlohmann::ordered_json exported_model(const RunSoFar& run) {
  std::vector<std::string> hashes;
  for (const auto& [model, checksum] : run.end.checksums) hashes.push_back(fmt::format("{:016x}", checksum));
  const std::string& from = run.end.exported;
  return {{"model_step", from.empty() ? run.iterations() : flow::checkpoint_step(from)},
          {"model_hash", fmt::format("{}", fmt::join(hashes, " "))}};
}

nlohmann::ordered_json why_stopped(const RunSoFar& run, const std::string& cause, int exit_code) {
  return {{"cause", cause},     {"exit_code", exit_code},       {"iterations", run.iterations()},
          {"ended", now_utc()}, {"warnings", warnings_of(run)}, {"left_out", run.data.left_out}};
}

}  // namespace collimate::recipe
