#include "collimate/recipe/summary.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include "collimate/host/cpu.h"
#include "collimate/host/memory.h"

namespace collimate::recipe {
namespace {

const char* instruction_set() {
  const host::CpuFeatures& cpu = host::cpu_features();
  if (cpu.amx_bf16) return "avx512 and amx";
  return cpu.avx512 ? "avx512" : cpu.avx2 ? "avx2" : "none";
}

}  // namespace

nlohmann::ordered_json versions() {
  return {{"collimate", COLLIMATE_VERSION},
          {"libtorch", fmt::format("{}.{}.{}", TORCH_VERSION_MAJOR, TORCH_VERSION_MINOR, TORCH_VERSION_PATCH)},
          {"compiler", fmt::format("gcc {}", __VERSION__)},
          {"instruction_set", instruction_set()},
          {"processor", host::cpu_model()}};
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
