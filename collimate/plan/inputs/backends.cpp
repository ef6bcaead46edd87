#include "collimate/plan/inputs/backends.h"

#include "collimate/base/edit_distance.h"
#include "collimate/base/named.h"

namespace collimate::plan {
namespace {

using C = Constants;

const std::vector<Backend> kBackends = {
    // `collimate bench planner --fit` prints the fitted rows: the fit to those published rows that may be used
    // (bench/published/fit.h).
    {.name = "real",
     .fitted = true,
     .values = {{&C::train_efficiency, 0.75},
                {&C::score_efficiency, 0.732},
                {&C::decode_layer_seconds, 0.000183},
                {&C::decode_tp_layer_seconds, 0.000968},
                {&C::update_seconds, 0.421},
                {&C::phase_seconds, 0.861},
                {&C::layer_seconds, 0.00187},
                {&C::network_efficiency, 0.909},
                {&C::decode_step_seconds, 0.00212},
                {&C::batch_rows, 1000000},
                {&C::mean_tokens, 7000},
                {&C::length_sigma, 0.8}},
     .source = "fitted to its rows with generated lengths 128 and 896"},
    {.name = "nemo-rl",
     .fitted = true,
     .values = {{&C::train_efficiency, 0.75},
                {&C::score_efficiency, 0.6},
                {&C::decode_layer_seconds, 0.000143},
                {&C::decode_tp_layer_seconds, 0.000154},
                {&C::update_seconds, 0.267},
                {&C::phase_seconds, 14.3},
                {&C::layer_seconds, 0.0002},
                {&C::network_efficiency, 0.65},
                {&C::decode_step_seconds, 0.0035},
                {&C::batch_rows, 256},
                {&C::mean_tokens, 7000},
                {&C::length_sigma, 0.8}},
     .source = "fitted to its rows of v0.4 and v0.5"},
    {.name = "deepspeed-chat",
     .fitted = true,
     .values = {{&C::train_efficiency, 0.26},
                {&C::score_efficiency, 0.24},
                {&C::decode_layer_seconds, 7.81e-05},
                {&C::decode_tp_layer_seconds, 3.47e-05},
                {&C::update_seconds, 1.77},
                {&C::phase_seconds, 0.394},
                {&C::layer_seconds, 0.0002},
                {&C::network_efficiency, 0.328},
                {&C::decode_step_seconds, 0.00217},
                {&C::batch_rows, 32},
                {&C::mean_tokens, 7000},
                {&C::length_sigma, 0.8}},
     .source = "fitted to its own rows and those as a baseline of ReaL and ChatLearn"},
    {.name = "openrlhf",
     .fitted = true,
     .values = {{&C::train_efficiency, 0.45},
                {&C::score_efficiency, 0.6},
                {&C::decode_layer_seconds, 8.09e-05},
                {&C::decode_tp_layer_seconds, 4.1e-05},
                {&C::update_seconds, 5.22},
                {&C::phase_seconds, 1.31},
                {&C::layer_seconds, 0.0002},
                {&C::network_efficiency, 0.0402},
                {&C::decode_step_seconds, 0.00247},
                {&C::batch_rows, 220},
                {&C::mean_tokens, 7000},
                {&C::length_sigma, 0.8}},
     .source = "fitted to its rows as a baseline of ReaL and ChatLearn, but for efficiencies, which are usual ones"},
    {.name = "chatlearn-megatron",
     .fitted = true,
     .values = {{&C::train_efficiency, 0.75},
                {&C::score_efficiency, 0.658},
                {&C::decode_layer_seconds, 0.00181},
                {&C::decode_tp_layer_seconds, 4.04e-05},
                {&C::update_seconds, 0.31},
                {&C::phase_seconds, 1.2},
                {&C::layer_seconds, 0.0002},
                {&C::network_efficiency, 0.149},
                {&C::decode_step_seconds, 0.00215},
                {&C::batch_rows, 1000000},
                {&C::mean_tokens, 7000},
                {&C::length_sigma, 0.8}},
     .source = "fitted to its rows of 2023"},
    {.name = "verl",
     .fitted = true,
     .values = {{&C::train_efficiency, 0.75},
                {&C::score_efficiency, 0.6},
                {&C::decode_layer_seconds, 2.19e-05},
                {&C::decode_tp_layer_seconds, 4.03e-05},
                {&C::update_seconds, 0.221},
                {&C::phase_seconds, 1.18},
                {&C::layer_seconds, 0.0002},
                {&C::network_efficiency, 0.668},
                {&C::decode_step_seconds, 0.000667},
                {&C::batch_rows, 1000000},
                {&C::mean_tokens, 1370},
                {&C::length_sigma, 1.5},
                // These are medians of the rows on up to 64 devices in verl's documentation of asynchronous training
                // (docs/advance/fully_async.md): an update's device seconds beside generation over those on devices of
                // its own, the seconds that training waits for rows which are there in time, and the seconds of a
                // transfer over the model's tensors.
                {&C::own_training, 1.7},
                {&C::queue_seconds, 28},
                {&C::tensor_seconds, 0.0008},
                // This is assumed: routed layers decode without CUDA graphs, in launches of half a millisecond a layer
                // (ReaL's 7B takes 0.57 in all, from 2406.14088).
                {&C::decode_expert_seconds, 0.0005}},
     .source = "fitted to its rows on 16 to 64 devices by a descent that was stopped; score efficiency and spread of "
               "lengths set by hand"},
    {.name = std::string(kOwnCpuBackend),
     .values = {{&C::train_efficiency, 3},
                {&C::score_efficiency, 3},
                {&C::memory_efficiency, 1.5},
                {&C::decode_layer_seconds, 5e-06},
                {&C::decode_step_seconds, 5e-05},
                {&C::decode_row_seconds, 1e-05},
                {&C::layer_seconds, 0},
                {&C::update_seconds, 0.0005},
                {&C::phase_seconds, 0.0005},
                {&C::host_row_seconds, 1.5e-05}},
     .source = "rounded medians of `collimate calibrate` for models of 1M and 4M on two cores with AVX-512; fp32 and "
               "bf16"},
    {.name = "chatlearn-vllm", .source = "the defaults: two rows are too few for a fit"},
    {.name = "areal", .source = "the defaults: its rows are only predicted"},
    {.name = "hybridflow", .source = "the defaults: Megatron and vLLM of 2024, whose rows are only predicted"}};

}  // namespace

const std::vector<Backend>& backends() { return kBackends; }

const Backend& find_backend(std::string_view name) {
  for (const Backend& known : backends())
    if (known.name == name) return known;
  base::throw_unknown_choice("backend", std::string(name), base::names_of(backends()));
}

}  // namespace collimate::plan
