#include "collimate/plan/inputs/device_kind.h"

namespace collimate::plan {
namespace {

struct KnownKind {
  const char* name;
  DeviceNumbers numbers;
  const char* source;
};

constexpr KnownKind kKnownKinds[] = {
    {"V100-32",
     {.flops = 125e12,
      .memory_bytes = 32e9,
      .memory_bytes_per_second = 900e9,
      .link_bytes_per_second = 150e9,
      .host_bytes_per_second = 12e9,
      .network_bytes_per_second = 12.5e9,
      .dollars_per_hour = 1.0},
     "NVIDIA V100 data sheet (SXM2, fp16)"},
    {"A6000-48",
     {.flops = 155e12,
      .memory_bytes = 48e9,
      .memory_bytes_per_second = 768e9,
      .link_bytes_per_second = 28e9,
      .host_bytes_per_second = 24e9,
      .network_bytes_per_second = 12.5e9,
      .per_node = 4,
      .dollars_per_hour = 0.8},
     "NVIDIA RTX A6000 data sheet; PCIe 4"},
    {"L40S-48",
     {.flops = 362e12,
      .fp8_flops = 733e12,
      .memory_bytes = 48e9,
      .memory_bytes_per_second = 864e9,
      .link_bytes_per_second = 28e9,
      .host_bytes_per_second = 24e9,
      .network_bytes_per_second = 25e9,
      .dollars_per_hour = 1.2},
     "NVIDIA L40S data sheet; PCIe 4"},
    {"A100-40",
     {.flops = 312e12,
      .memory_bytes = 40e9,
      .memory_bytes_per_second = 1555e9,
      .link_bytes_per_second = 300e9,
      .host_bytes_per_second = 24e9,
      .network_bytes_per_second = 25e9,
      .dollars_per_hour = 1.3},
     "NVIDIA A100 data sheet; NVLink 3"},
    {"A100-80",
     {.flops = 312e12,
      .memory_bytes = 80e9,
      .memory_bytes_per_second = 2039e9,
      .link_bytes_per_second = 300e9,
      .host_bytes_per_second = 24e9,
      .network_bytes_per_second = 25e9,
      .dollars_per_hour = 1.6},
     "NVIDIA A100 data sheet; NVLink 3"},
    {"A800-80",
     {.flops = 312e12,
      .memory_bytes = 80e9,
      .memory_bytes_per_second = 2039e9,
      .link_bytes_per_second = 200e9,
      .host_bytes_per_second = 24e9,
      .network_bytes_per_second = 12.5e9,
      .dollars_per_hour = 1.5},
     "as A100-80 with NVLink at 400 GB/s both ways"},
    {"H100-80",
     {.flops = 989e12,
      .fp8_flops = 1979e12,
      .memory_bytes = 80e9,
      .memory_bytes_per_second = 3350e9,
      .link_bytes_per_second = 450e9,
      .host_bytes_per_second = 50e9,
      .network_bytes_per_second = 50e9,
      .dollars_per_hour = 2.5},
     "NVIDIA H100 SXM data sheet; NVLink 4"},
    {"H800-80",
     {.flops = 989e12,
      .fp8_flops = 1979e12,
      .memory_bytes = 80e9,
      .memory_bytes_per_second = 3350e9,
      .link_bytes_per_second = 200e9,
      .host_bytes_per_second = 50e9,
      .network_bytes_per_second = 50e9,
      .dollars_per_hour = 2.3},
     "as H100-80 with NVLink at 400 GB/s both ways (2510.12633)"},
    {"H200-141",
     {.flops = 989e12,
      .fp8_flops = 1979e12,
      .memory_bytes = 141e9,
      .memory_bytes_per_second = 4800e9,
      .link_bytes_per_second = 450e9,
      .host_bytes_per_second = 50e9,
      .network_bytes_per_second = 50e9,
      .dollars_per_hour = 3.2},
     "NVIDIA H200 data sheet"},
    {"H20-96",
     {.flops = 148e12,
      .fp8_flops = 296e12,
      .memory_bytes = 96e9,
      .memory_bytes_per_second = 4000e9,
      .link_bytes_per_second = 450e9,
      .host_bytes_per_second = 50e9,
      .network_bytes_per_second = 25e9,
      .dollars_per_hour = 1.4},
     "NVIDIA H20 as in verl's FLOPs counter"},
    {"B200-180",
     {.flops = 2250e12,
      .fp8_flops = 4500e12,
      .memory_bytes = 180e9,
      .memory_bytes_per_second = 8000e9,
      .link_bytes_per_second = 900e9,
      .host_bytes_per_second = 50e9,
      .network_bytes_per_second = 50e9,
      .dollars_per_hour = 4.5},
     "NVIDIA B200 data sheet"},
    {"GB200-186",
     {.flops = 2500e12,
      .fp8_flops = 5000e12,
      .memory_bytes = 186e9,
      .memory_bytes_per_second = 8000e9,
      .link_bytes_per_second = 900e9,
      .host_bytes_per_second = 200e9,
      .network_bytes_per_second = 50e9,
      .per_node = 4,
      .dollars_per_hour = 5.5},
     "NVIDIA GB200 NVL72 data sheet; host over NVLink-C2C"},
    // This runtime holds fp32 values, panels of up to twice their size (model/memory_plan.h) and fp32 activations.
    {"cpu",
     {.flops = 0.05e12,
      .memory_bytes = 8e9,
      .memory_bytes_per_second = 10e9,
      .link_bytes_per_second = 5e9,
      .host_bytes_per_second = 5e9,
      .network_bytes_per_second = 1e9,
      .per_node = 2,
      .dollars_per_hour = 0.05,
      .weight_bytes = 12,
      .value_bytes = 4},
     "one server core: AVX2 at 3 GHz and its share of memory; calibrate"}};

}  // namespace

std::vector<DeviceKind> known_device_kinds() {
  std::vector<DeviceKind> kinds;
  for (const KnownKind& known : kKnownKinds) {
    kinds.push_back({known.numbers, known.name, known.source});
    kinds.back().cpu = kinds.back().name == "cpu";
  }
  return kinds;
}

const std::string& price_source() {
  static const std::string kSource =
      "assumed: they lie within what clouds asked on demand in May 2026 for A100-80 ($0.80-3.00), H100-80 ($1.99-5.00) "
      "and H200-141 ($2.50-7.00), by mercatus-ai.com/blog/cloud-gpu-pricing; those of other devices are in proportion "
      "to their speed";
  return kSource;
}

}  // namespace collimate::plan
