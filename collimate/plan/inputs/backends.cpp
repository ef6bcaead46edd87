#include <array>

#include "collimate/plan/inputs/constants.h"

namespace collimate::plan {
namespace {

using C = Constants;

struct Fitted {
  const char* name;
  std::array<double, 12> values;  // of fitted_members()
  const char* rows;
};

// Fitted by published::fit to the rows that may be fitted (placement.md 9.6).
constexpr Fitted kFitted[] = {
    {"real",
     {0.75, 0.732, 0.000183, 0.000968, 0.421, 0.861, 0.00187, 0.909, 0.00212, 1e6, 7000, 0.8},
     "its rows with generated lengths 128 and 896"},
    {"nemo-rl",
     {0.75, 0.6, 0.000143, 0.000154, 0.267, 14.3, 0.0002, 0.65, 0.0035, 256, 7000, 0.8},
     "its rows of v0.4 and v0.5"},
    {"deepspeed-chat",
     {0.26, 0.24, 7.81e-05, 3.47e-05, 1.77, 0.394, 0.0002, 0.328, 0.00217, 32, 7000, 0.8},
     "its own rows and those as a baseline of ReaL and ChatLearn"},
    {"openrlhf",
     {0.45, 0.6, 8.09e-05, 4.1e-05, 5.22, 1.31, 0.0002, 0.0402, 0.00247, 220, 7000, 0.8},
     "its rows as a baseline of ReaL and ChatLearn, but for efficiencies, which are usual ones"},
    {"chatlearn-megatron",
     {0.75, 0.658, 0.00181, 4.04e-05, 0.31, 1.2, 0.0002, 0.149, 0.00215, 1e6, 7000, 0.8},
     "its rows of 2023"},
    {"verl",
     {0.75, 0.6, 2.19e-05, 4.03e-05, 0.221, 1.18, 0.0002, 0.668, 0.000667, 1e6, 1370, 1.5},
     "its rows on 16 to 64 devices by a descent that was stopped; score efficiency and spread of lengths set by hand"}};

// Read off verl's documentation of asynchronous training (docs/advance/fully_async.md), medians of its rows on up to 64
// devices: an update's device seconds beside generation over those on devices of its own, what training waits for rows
// that are there in time, and seconds of a transfer over the model's tensors. Routed layers decode without CUDA graphs
// (placement.md 6.3).
constexpr std::array<std::pair<double C::*, double>, 4> kOfVerl = {{{&C::own_training, 1.7},
                                                                    {&C::queue_seconds, 28},
                                                                    {&C::tensor_seconds, 0.8e-3},
                                                                    {&C::decode_expert_seconds, 0.5e-3}}};

std::vector<Backend> make() {
  std::vector<Backend> all;
  for (const Fitted& fitted : kFitted) {
    Backend backend{fitted.name, {}, std::string("fitted to ") + fitted.rows};
    for (size_t i = 0; i < fitted.values.size(); ++i)
      backend.values.emplace_back(fitted_members()[i], fitted.values[i]);
    if (backend.name == "verl") backend.values.insert(backend.values.end(), kOfVerl.begin(), kOfVerl.end());
    all.push_back(std::move(backend));
  }
  all.push_back({"chatlearn-vllm", {}, "the defaults: two rows are too few for a fit"});
  all.push_back({"areal", {}, "the defaults: its rows are only predicted"});
  all.push_back({"hybridflow", {}, "the defaults: Megatron and vLLM of 2024, whose rows are only predicted"});
  return all;
}

}  // namespace

const std::array<double Constants::*, 12>& fitted_members() {
  static constexpr std::array kMembers = {
      &C::train_efficiency,    &C::score_efficiency, &C::decode_layer_seconds, &C::decode_tp_layer_seconds,
      &C::update_seconds,      &C::phase_seconds,    &C::layer_seconds,        &C::network_efficiency,
      &C::decode_step_seconds, &C::batch_rows,       &C::mean_tokens,          &C::length_sigma};
  return kMembers;
}

const std::vector<Backend>& backends() {
  static const std::vector<Backend> kBackends = make();
  return kBackends;
}

}  // namespace collimate::plan
