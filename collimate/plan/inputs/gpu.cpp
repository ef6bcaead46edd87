#include "collimate/plan/inputs/gpu.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"

namespace collimate::plan {
namespace {

// Teraflop/s, gigabytes and gigabytes per second become units of one.
Gpu gpu(const char* name, double tera, double fp8_tera, double gb, double hbm, double link, double host, int per_node,
        double network, double dollars, const char* source) {
  return {name,       tera * 1e12, fp8_tera * 1e12, gb * 1e9, hbm * 1e9, link * 1e9,
          host * 1e9, per_node,    network * 1e9,   dollars,  source};
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

}  // namespace

const std::vector<Gpu>& gpus() {
  // name, bf16 and fp8 Tflop/s, memory GB, memory GB/s, link GB/s, host GB/s, per node, network GB/s, dollars per hour.
  static const std::vector<Gpu> kGpus = {
      gpu("V100-32", 125, 0, 32, 900, 150, 12, 8, 12.5, 1.0, "NVIDIA V100 data sheet (SXM2, fp16)"),
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
      gpu("cpu", 0.05, 0, 8, 10, 5, 5, 2, 1, 0.05,
          "one server core: AVX2 at 3 GHz and its share of memory; calibrate")};
  return kGpus;
}

Gpu in_step(const Gpu& a, const Gpu& b) {
  Gpu made = a;
  if (a.name != b.name) made.name += "+" + b.name;
  for (double Gpu::*number :
       {&Gpu::flops, &Gpu::fp8_flops, &Gpu::memory_bytes, &Gpu::memory_bytes_per_second, &Gpu::link_bytes_per_second,
        &Gpu::host_bytes_per_second, &Gpu::network_bytes_per_second, &Gpu::dollars_per_hour})
    made.*number = std::min(a.*number, b.*number);
  made.per_node = std::min(a.per_node, b.per_node);
  return made;
}

const std::string& price_source() {
  static const std::string kSource =
      "assumed: within what clouds listed on demand in May 2026 for A100-80 ($0.80-3.00), H100-80 ($1.99-5.00) and "
      "H200-141 ($2.50-7.00), by mercatus-ai.com/blog/cloud-gpu-pricing; the others by their speed beside these";
  return kSource;
}

bool price_is_given(const Gpu& gpu) { return gpu.dollars_per_hour != find_gpu(gpu.name).dollars_per_hour; }

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
  std::vector<std::string> names, families;
  for (const Gpu& known : gpus()) {
    names.push_back(known.name);
    families.push_back(known.name.substr(0, known.name.find('-')));
  }
  const std::string family = base::nearest(name.substr(0, name.find('-')), families);
  if (family.empty() || !base::nearest(name, names).empty()) base::throw_unknown_name("gpu", name, names);
  throw base::InputError(base::expectation("gpu", fmt::format("one of {}", fmt::join(names, ", ")), "'" + name + "'",
                                           "'" + gpu_named(family)->name + "'"));
}

}  // namespace collimate::plan
