#include "collimate/plan/inputs/constants.h"

#include <algorithm>
#include <cstdlib>

#include "collimate/base/at.h"
#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/named.h"
#include "collimate/base/nearest_number.h"
#include "collimate/plan/inputs/backends.h"

namespace collimate::plan {
namespace {

using C = Constants;

// These are NCCL's tuning constants (nccl/src/graph/tuning.cc as of 2.19), by nccl_index(), in seconds: base, hop over
// NVLink, hop over the network; then the share of the bandwidth that the protocol leaves.
constexpr std::array<NcclConstants, 6> kNccl = {{{6.6e-6, 0.6e-6, 2.7e-6, 0.5},
                                                 {14e-6, 1.9e-6, 4.0e-6, 0.92},
                                                 {8.4e-6, 3.4e-6, 14e-6, 1.0},
                                                 {6.8e-6, 0.6e-6, 5.0e-6, 0.45},
                                                 {14e-6, 1.25e-6, 8.5e-6, 0.85},
                                                 {8.4e-6, 4.0e-6, 14e-6, 0.92}}};

// A row has name, member, value, low, high, unit, help and source. Shares of the device table's peaks may be above 1:
// the table's CPU is a generic core in fp32, and a core with bf16 tiles does up to 60 times as much.
std::vector<ConstantInfo> speeds() {
  return {{"train_efficiency", &C::train_efficiency, 0.45, 1e-4, 100, "share", "of peak FLOP/s in training kernels",
           "2205.05198 and llm-analysis give 0.35-0.55"},
          {"own_training", &C::own_training, 1, 0.1, 4, "", "speed of training on devices that do not generate",
           "1: no faster than where they also generate"},
          {"score_efficiency", &C::score_efficiency, 0.5, 1e-4, 100, "share",
           "of peak FLOP/s in forwards without gradient", "llm-analysis: 0.5-0.7 for long inputs"},
          {"memory_efficiency", &C::memory_efficiency, 0.8, 0.01, 100, "share", "of peak memory bandwidth in decoding",
           "llm-analysis: 0.8-0.9"},
          {"link_efficiency", &C::link_efficiency, 0.8, 0.05, 1, "share", "of peak link bandwidth",
           "assumed; nccl-tests reaches 0.75-0.85 of a ring's bound"},
          {"network_efficiency", &C::network_efficiency, 0.8, 0.02, 1, "share", "of peak network bandwidth",
           "assumed; fitted per back end"}};
}

std::vector<ConstantInfo> latencies() {
  return {
      {"decode_layer_seconds", &C::decode_layer_seconds, 60e-6, 1e-6, 20e-3, "s",
       "a decoded token's launches in one layer", "60 us fit ChatLearn's seven rows of 2023; 5-20 us with CUDA graphs"},
      {"decode_tp_layer_seconds", &C::decode_tp_layer_seconds, 40e-6, 0, 20e-3, "s",
       "what a layer adds when its matrices are split, beside the collectives' own time",
       "assumed between ReaL's searched plans and its TP8 heuristic, 0.6 and 1.3 ms a layer at 7B (2406.14088)"},
      {"decode_step_seconds", &C::decode_step_seconds, 2e-3, 0, 1, "s", "sampling and scheduling of a decoded token",
       "assumed; fitted per back end"},
      {"decode_expert_seconds", &C::decode_expert_seconds, 0, 0, 20e-3, "s",
       "what a decoded token adds in a layer of routed experts", "0: in CUDA graphs as in a dense layer"},
      {"decode_row_seconds", &C::decode_row_seconds, 0, 0, 1e-2, "s", "the same per row in the batch", "assumed"},
      {"layer_seconds", &C::layer_seconds, 0.2e-3, 0, 0.1, "s", "least time of a layer's forward of one micro-batch",
       "assumed: about 20 launches of 10 us"},
      {"update_seconds", &C::update_seconds, 0.3, 0, 300, "s", "an optimizer step beside its memory traffic",
       "assumed; fitted per back end"},
      {"phase_seconds", &C::phase_seconds, 1.0, 0, 600, "s", "a phase's fixed cost: data, switching, host code",
       "assumed; fitted per back end"},
      {"host_row_seconds", &C::host_row_seconds, 0, 0, 60, "s",
       "a host function's work for a row (rewards, advantages), beside what its spec says", "0: unknown; calibrate"},
      {"tensor_seconds", &C::tensor_seconds, 0, 0, 1, "s",
       "a weight tensor's transfer to other devices, beside its bytes", "0: tensors are packed"},
      {"queue_seconds", &C::queue_seconds, 0, 0, 600, "s",
       "least wait of an asynchronous training for an iteration's rows", "0: rows are there"},
      {"serial_pipeline", &C::serial_pipeline, 0, 0, 1, "share", "1: only one pipeline stage decodes at a time",
       "filled fits ChatLearn's chart of 2023, serial its PP8 runs"},
      {"overlap", &C::overlap, 0.5, 0, 1, "share", "of gradient and ZeRO traffic hidden behind compute", "assumed"}};
}

std::vector<ConstantInfo> sizes() {
  return {{"usable_memory", &C::usable_memory, 0.94, 0.3, 1, "share", "of a device's memory",
           "assumed: driver and context take 3-5 GB of 80"},
          {"workspace_bytes", &C::workspace_bytes, 2e9, 0, 1e11, "bytes", "buffers of kernels and collectives",
           "assumed: pools of CUDA graphs take 1-2 GB"},
          {"cpu_workspace_bytes", &C::cpu_workspace_bytes, 16 * 1024 * 1024, 0, 1e11, "bytes",
           "the same on CPU devices; workspace_bytes sets both",
           "the bound is then within one and two measured peaks (tests/e2e/memory_test.cpp)"},
          {"kv_share", &C::kv_share, 0.9, 0.05, 1, "share", "of free memory given to keys and values",
           "vLLM's gpu_memory_utilization"},
          {"gradient_bytes", &C::gradient_bytes, 4, 1, 8, "bytes", "a gradient element", "Megatron sums in fp32"},
          {"optimizer_bytes", &C::optimizer_bytes, 12, 0, 32, "bytes", "an element's master and two moments",
           "Adam in fp32"},
          {"length_sigma", &C::length_sigma, 0.8, 0.01, 3, "", "spread of log completion length where none is reported",
           "P99 over ten medians (Laminar, DORA) is 1.0; mathematics of 2025 is narrower"},
          {"mean_tokens", &C::mean_tokens, 7000, 1, 1e6, "tokens",
           "mean completion of a run that reports only its cap; at most half the cap",
           "assumed; Seer's three models: 7,615 to 38,959"},
          {"batch_rows", &C::batch_rows, 1e6, 1, 1e6, "rows",
           "that a replica decodes in one call at most, one call after the other; 1e6: no limit but memory",
           "software's choice: OpenRLHF's micro_rollout_batch_size, DeepSpeed-Chat's generation batch"},
          {"hiding_staleness", &C::hiding_staleness, 0.2, 0.01, 4, "iterations",
           "of staleness with which published asynchronous runs hide the shorter side behind the longer one",
           "assumed: generation's tail is its last fifth of the rows"}};
}

}  // namespace

const std::vector<ConstantInfo>& constant_table() {
  static const std::vector<ConstantInfo> kTable = [] {
    std::vector<ConstantInfo> all = speeds();
    for (const auto& more : {latencies(), sizes()}) all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return kTable;
}

const ConstantInfo& constant_info(double Constants::*member) {
  for (const ConstantInfo& info : constant_table())
    if (info.member == member) return info;
  COLLIMATE_CHECK(false, "a constant outside the table");
}

const ConstantInfo& constant_info(const std::string& name, const std::string& where) {
  for (const ConstantInfo& info : constant_table())
    if (info.name == name) return info;
  base::throw_unknown_choice(where, name, base::names_of(constant_table()));
}

bool within_limits(const ConstantInfo& info, double value) { return value >= info.low && value <= info.high; }

void give(Constants& constants, const ConstantInfo& info, double value) {
  constants.*info.member = value;
  if (info.member == &C::workspace_bytes) constants.cpu_workspace_bytes = value;
}

std::string limits_text(const ConstantInfo& info) {
  return fmt::format("a number from {} to {}{}{}", info.low, info.high, info.unit.empty() ? "" : " ", info.unit);
}

Constants constants_of(std::string_view backend) {
  Constants constants;
  for (const ConstantInfo& info : constant_table()) constants.*info.member = info.value;
  constants.nccl = kNccl;
  if (backend.empty()) return constants;
  for (const auto& [member, value] : find_backend(backend).values) constants.*member = value;
  return constants;
}

namespace {

// An NcclKey names one of NCCL's own constants, as `nccl.ring_ll.base_seconds`.
struct NcclKey {
  std::string name;
  size_t index;
  double NcclConstants::*member;
  double high;
};

std::vector<NcclKey> nccl_keys() {
  const char* algorithms[] = {"ring", "tree"};
  const char* protocols[] = {"ll", "ll128", "simple"};
  std::vector<NcclKey> keys;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree})
    for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple}) {
      const std::string name =
          fmt::format("nccl.{}_{}.", base::at(algorithms, algorithm), base::at(protocols, protocol));
      const size_t index = Constants::nccl_index(algorithm, protocol);
      keys.push_back({name + "base_seconds", index, &NcclConstants::base_seconds, 1});
      keys.push_back({name + "link_seconds", index, &NcclConstants::link_seconds, 1});
      keys.push_back({name + "network_seconds", index, &NcclConstants::network_seconds, 1});
      keys.push_back({name + "efficiency", index, &NcclConstants::efficiency, 1});
    }
  return keys;
}

double constant_value(const std::string& text, const std::string& name, const std::string& limits, double low,
                      double high, double now) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= low && value <= high))
    throw base::InputError(
        base::expectation("constant " + name, limits, "'" + text + "'",
                          fmt::format("{}={}", name, base::nearest_number(text, low, high, fmt::format("{}", now)))));
  return value;
}

}  // namespace

void set_constant(Constants& constants, const std::string& assignment) {
  const size_t equals = std::min(assignment.find('='), assignment.size());
  const std::string name = assignment.substr(0, equals);
  const std::string text = equals < assignment.size() ? assignment.substr(equals + 1) : "";
  if (name.starts_with("nccl.")) {
    const std::vector<NcclKey> keys = nccl_keys();
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const NcclKey& known) { return known.name == name; });
    if (key == keys.end()) base::throw_unknown_choice("constant", name, base::names_of(keys));
    const double low = key->member == &NcclConstants::efficiency ? 0.01 : 0;
    double& value = constants.nccl[key->index].*key->member;
    value = constant_value(text, name, fmt::format("a number from {} to {}", low, key->high), low, key->high, value);
    return;
  }
  const ConstantInfo& info = constant_info(name, "constant");
  give(constants, info,
       constant_value(text, info.name, limits_text(info), info.low, info.high, constants.*info.member));
}

}  // namespace collimate::plan
