#include "collimate/recipe/summary.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <ctime>

#include "collimate/host/cpu.h"
#include "collimate/host/memory.h"
#include "collimate/rlhf/reward/reward_section.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::recipe {

nlohmann::ordered_json versions() {
  return {{"collimate", COLLIMATE_VERSION},
          {"libtorch", fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH)},
          {"compiler", fmt::format("gcc {}", __VERSION__)},
          {"instruction_set", std::string(tensor::name_of(tensor::instruction_set()))},
          {"processor", host::cpu_model()}};
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::vector<std::string> run_warnings(const Plan& plan, const LearningWatch& watch) {
  std::vector<std::string> out;
  for (const std::string& name : plan.rewards)
    for (const nlohmann::json& entry : plan.modules.at(name).parameters.at("rewards"))
      if (entry.contains("python") && entry.value("sandbox", "") == rlhf::PythonSection::kNoSandbox)
        out.push_back(
            fmt::format("reward {} ran without a sandbox (sandbox: none)", entry.at("python").get<std::string>()));
  out.insert(out.end(), watch.warnings().begin(), watch.warnings().end());
  return out;
}

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

}  // namespace collimate::recipe
