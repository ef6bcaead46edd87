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
constexpr Fitted kFitted[] = {{"real",
                               {0.477, 0.541, 0.000228, 0.001, 0.331, 1.76, 0.0002, 0.615, 0.00174, 1e6, 7000, 0.8},
                               "its rows with generated lengths 128 and 896"},
                              {"nemo-rl",
                               {0.75, 0.6, 0.000143, 0.000154, 0.267, 14.3, 0.0002, 0.65, 0.0035, 256, 7000, 0.8},
                               "its rows of v0.4 and v0.5"},
                              {"deepspeed-chat",
                               {0.265, 0.173, 6.25e-05, 5.67e-05, 0.288, 5.83, 0.0002, 1, 0.00179, 32, 7000, 0.8},
                               "its own rows and those as a baseline of ReaL and ChatLearn"},
                              {"openrlhf",
                               {0.085, 0.654, 9.99e-05, 4.17e-05, 0.3, 2.31, 0.0002, 0.02, 0.00272, 169, 7000, 0.8},
                               "its rows as a baseline of ReaL and ChatLearn"},
                              {"chatlearn-megatron",
                               {0.75, 0.658, 0.00181, 4.04e-05, 0.31, 1.2, 0.0002, 0.149, 0.00215, 1e6, 7000, 0.8},
                               "its rows of 2023"},
                              {"verl",
                               {0.75, 0.455, 2.19e-05, 4.03e-05, 0.221, 1.18, 0.0002, 0.668, 0.000667, 1e6, 1370, 3},
                               "its colocated rows on 16 to 64 devices"}};

std::vector<Backend> make() {
  std::vector<Backend> all;
  for (const Fitted& fitted : kFitted) {
    Backend backend{fitted.name, {}, std::string("fitted to ") + fitted.rows};
    for (size_t i = 0; i < fitted.values.size(); ++i)
      backend.values.emplace_back(fitted_members()[i], fitted.values[i]);
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
