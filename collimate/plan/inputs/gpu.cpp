#include "collimate/plan/inputs/gpu.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/nearest_number.h"

namespace collimate::plan {
namespace {

// Teraflop/s, gigabytes and gigabytes per second become units of one.
Gpu gpu(const char* name, double tera, double fp8_tera, double gb, double hbm, double link, double host, int per_node,
        double network, double dollars, const char* source) {
  return {name,       tera * 1e12, fp8_tera * 1e12, gb * 1e9,      hbm * 1e9,
          link * 1e9, host * 1e9,  per_node,        network * 1e9, dollars,
          2,          2,           false,           false,         source};
}

// Letters and digits, lower case, without what every row has.
std::string plain(const std::string& name) {
  std::string kept;
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)))
      kept += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string ending : {"gb", "sxm", "sxm2", "sxm4", "sxm5", "hbm3"})
    if (kept.size() > ending.size() && kept.ends_with(ending)) kept.resize(kept.size() - ending.size());
  return kept;
}

// The runtime's own: fp32 values, panels of up to twice their size (model/memory_plan.h), activations in fp32.
Gpu cpu_core() {
  Gpu made =
      gpu("cpu", 0.05, 0, 8, 10, 5, 5, 2, 1, 0.05, "one server core: AVX2 at 3 GHz and its share of memory; calibrate");
  made.weight_bytes = 12;
  made.value_bytes = 4;
  return made;
}

std::vector<Gpu> known_gpus() {
  // name, bf16 and fp8 Tflop/s, memory GB, memory GB/s, link GB/s, host GB/s, per node, network GB/s, dollars per hour.
  return {gpu("V100-32", 125, 0, 32, 900, 150, 12, 8, 12.5, 1.0, "NVIDIA V100 data sheet (SXM2, fp16)"),
          gpu("A6000-48", 155, 0, 48, 768, 28, 24, 4, 12.5, 0.8, "NVIDIA RTX A6000 data sheet; PCIe 4"),
          gpu("L40S-48", 362, 733, 48, 864, 28, 24, 8, 25, 1.2, "NVIDIA L40S data sheet; PCIe 4"),
          gpu("A100-40", 312, 0, 40, 1555, 300, 24, 8, 25, 1.3, "NVIDIA A100 data sheet; NVLink 3"),
          gpu("A100-80", 312, 0, 80, 2039, 300, 24, 8, 25, 1.6, "NVIDIA A100 data sheet; NVLink 3"),
          gpu("A800-80", 312, 0, 80, 2039, 200, 24, 8, 12.5, 1.5, "as A100-80 with NVLink at 400 GB/s both ways"),
          gpu("H100-80", 989, 1979, 80, 3350, 450, 50, 8, 50, 2.5, "NVIDIA H100 SXM data sheet; NVLink 4"),
          gpu("H800-80", 989, 1979, 80, 3350, 200, 50, 8, 50, 2.3,
              "as H100-80 with NVLink at 400 GB/s both ways (2510.12633)"),
          gpu("H200-141", 989, 1979, 141, 4800, 450, 50, 8, 50, 3.2, "NVIDIA H200 data sheet"),
          gpu("H20-96", 148, 296, 96, 4000, 450, 50, 8, 25, 1.4, "NVIDIA H20 as in verl's FLOPs counter"),
          gpu("B200-180", 2250, 4500, 180, 8000, 900, 50, 8, 50, 4.5, "NVIDIA B200 data sheet"),
          gpu("GB200-186", 2500, 5000, 186, 8000, 900, 200, 4, 50, 5.5,
              "NVIDIA GB200 NVL72 data sheet; host over NVLink-C2C"),
          cpu_core()};
}

// What set_device changes: the kinds are the user's as the command line is.
std::vector<Gpu>& gpu_table() {
  static std::vector<Gpu> gpus = known_gpus();
  return gpus;
}

// A number of a kind by its name, with its limits.
struct DeviceKey {
  const char* name;
  double Gpu::*member;
  double low, high;
};
constexpr DeviceKey kKeys[] = {{"flops", &Gpu::flops, 1e6, 1e18},
                               {"fp8_flops", &Gpu::fp8_flops, 0, 1e18},
                               {"memory_bytes", &Gpu::memory_bytes, 1e6, 1e14},
                               {"memory_bytes_per_second", &Gpu::memory_bytes_per_second, 1e6, 1e15},
                               {"link_bytes_per_second", &Gpu::link_bytes_per_second, 1e6, 1e14},
                               {"host_bytes_per_second", &Gpu::host_bytes_per_second, 1e6, 1e14},
                               {"network_bytes_per_second", &Gpu::network_bytes_per_second, 1e5, 1e14},
                               {"dollars_per_hour", &Gpu::dollars_per_hour, 0, 1e5},
                               {"weight_bytes", &Gpu::weight_bytes, 0.5, 64},
                               {"value_bytes", &Gpu::value_bytes, 0.5, 8}};
constexpr const char* kPerNode = "per_node";

// `now`: what it is, for an error about what is no number.
double device_number(const std::string& text, const std::string& where, double low, double high, double now) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= low && value <= high))
    throw base::InputError(base::expectation(where, fmt::format("a number from {} to {}", low, high), "'" + text + "'",
                                             base::nearest_number(text, low, high, fmt::format("{}", now))));
  return value;
}

void set_number(Gpu& gpu, const std::string& key, const std::string& text) {
  const std::string where = "--device " + gpu.name + "." + key;
  gpu.source = "--device";
  if (key == kPerNode) {
    const double count = device_number(text, where, 1, 1024, gpu.per_node);
    if (count != std::floor(count))
      throw base::InputError(
          base::expectation(where, "whole devices", "'" + text + "'", fmt::format("{}", std::round(count))));
    gpu.per_node = static_cast<int>(count);
    return;
  }
  std::vector<std::string> names{kPerNode};
  for (const DeviceKey& known : kKeys) {
    names.push_back(known.name);
    if (key == known.name) {
      gpu.*known.member = device_number(text, where, known.low, known.high, gpu.*known.member);
      gpu.price_given = gpu.price_given || known.member == &Gpu::dollars_per_hour;
      return;
    }
  }
  base::throw_unknown_choice("--device " + gpu.name, key, names);
}

// With a name that a cluster can say.
void add_kind(const std::string& name, const Gpu& like) {
  const bool plain_name = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  });
  if (!plain_name || name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0)
    throw base::InputError(base::expectation("--device", "a new kind's name of letters, digits, - and _ after a letter",
                                             "'" + name + "'", "X9=A100-80"));
  Gpu made = like;
  made.name = name;
  made.source = "--device, as " + like.name;
  gpu_table().push_back(made);
}

}  // namespace

const std::vector<Gpu>& gpus() { return gpu_table(); }

void set_device(const std::string& assignment) {
  const size_t equals = std::min(assignment.find('='), assignment.size()), dot = assignment.rfind('.', equals);
  const std::string value = equals < assignment.size() ? assignment.substr(equals + 1) : "";
  const bool number = dot != std::string::npos && dot < equals;
  const std::string name = assignment.substr(0, number ? dot : equals);
  const Gpu* known = gpu_named(name);
  if (!number && equals < assignment.size()) {
    if (known != nullptr)
      throw base::InputError(base::expectation("--device", "a new kind's name", "'" + name + "', which there is",
                                               name + ".memory_bytes=…"));
    return add_kind(name, find_gpu(value));
  }
  if (!number)
    throw base::InputError(base::expectation("--device", "KIND.KEY=NUMBER or NEW=KIND", "'" + assignment + "'",
                                             "A100-80.memory_bytes=64e9"));
  const std::string exact = find_gpu(name).name;
  for (Gpu& gpu : gpu_table())
    if (gpu.name == exact) set_number(gpu, assignment.substr(dot + 1, equals - dot - 1), value);
}

Gpu in_step(const Gpu& a, const Gpu& b) {
  Gpu made = a;
  if (a.name != b.name) made.name += "+" + b.name;
  for (double Gpu::*number :
       {&Gpu::flops, &Gpu::fp8_flops, &Gpu::memory_bytes, &Gpu::memory_bytes_per_second, &Gpu::link_bytes_per_second,
        &Gpu::host_bytes_per_second, &Gpu::network_bytes_per_second, &Gpu::dollars_per_hour})
    made.*number = std::min(a.*number, b.*number);
  made.weight_bytes = std::max(a.weight_bytes, b.weight_bytes);
  made.value_bytes = std::max(a.value_bytes, b.value_bytes);
  made.per_node = std::min(a.per_node, b.per_node);
  return made;
}

const std::string& price_source() {
  static const std::string kSource =
      "assumed: within what clouds listed on demand in May 2026 for A100-80 ($0.80-3.00), H100-80 ($1.99-5.00) and "
      "H200-141 ($2.50-7.00), by mercatus-ai.com/blog/cloud-gpu-pricing; the others by their speed beside these";
  return kSource;
}

std::vector<std::string> gpu_names() {
  std::vector<std::string> names;
  for (const Gpu& known : gpus()) names.push_back(known.name);
  return names;
}

const Gpu* gpu_named(const std::string& name) {
  const std::string wanted = plain(name);
  if (wanted.empty()) return nullptr;
  const Gpu* family = nullptr;  // the last, largest of a name without its memory
  for (const Gpu& known : gpus()) {
    if (plain(known.name) == wanted) return &known;
    if (plain(known.name.substr(0, known.name.find('-'))) == wanted) family = &known;
  }
  return family;
}

const Gpu& find_gpu(const std::string& name) {
  if (const Gpu* known = gpu_named(name)) return *known;
  throw base::InputError(base::expectation("gpu", fmt::format("one of {}", fmt::join(gpu_names(), ", ")),
                                           "'" + name + "'", "'" + nearest_gpu(name).name + "'"));
}

const Gpu& nearest_gpu(const std::string& name) {
  if (const std::string near = base::nearest(name, gpu_names()); !near.empty()) return *gpu_named(near);
  std::vector<std::string> families;
  for (const Gpu& known : gpus()) families.push_back(known.name.substr(0, known.name.find('-')));
  return *gpu_named(base::closest(name.substr(0, name.find('-')), families));
}

}  // namespace collimate::plan
