#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"

namespace collimate::model {

class Weights;

// Low-rank adapters (Hu et al. 2021): beside a linear layer W [out, in] of the blocks run A [rank, in] and
// B [out, rank], y = W x + bias + scale B (A x). They are parameters of the same Weights, behind the model's own and in
// one segment of their own; training changes them alone, a score or value head, and modules that are named. Unfused: W
// stays as it is, so that a row's bits are those of lora_layer.h wherever it is computed. A parameter's name is that of
// PEFT's files.
struct LoraOptions {
  int64_t rank = 0;  // 0: no adapters
  double alpha = 32;
  bool rslora = false;  // scale alpha / √rank (Kalajdzievski 2023) instead of alpha / rank
  // Layers by the last parts of their name, as PEFT's target_modules: "q_proj", "mlp.c_proj"; "all-linear" for all.
  std::vector<std::string> targets = {"all-linear"};
  double dropout = 0;  // training drops this share of each adapter's inputs, by TokenBatch::noise
  // Modules outside the blocks that are trained whole, named alike: "embed_tokens", "lm_head" (PEFT's modules_to_save).
  std::vector<std::string> modules_to_save = {};

  bool on() const { return rank > 0; }
  float scale() const;
};

// The parameters of a shape, and behind them those of adapters: the A of layers that run as one are one too. InputError
// for a target that names no linear layer of the blocks, and for a module to save that is none outside of them; the
// head of a language model may be named where a model has another.
std::vector<shape::ParamSpec> model_params(const shape::ModelShape& shape, const LoraOptions& lora);
// The targets, "all-linear" as the names that it stands for.
std::vector<std::string> lora_targets(const shape::ModelShape& shape, const LoraOptions& lora);
// Whether it is a parameter of an adapter, and whether training changes it.
inline bool is_adapter(const shape::ParamSpec& spec) { return spec.part == shape::Part::kAdapter; }
bool is_adapter_b(const shape::ParamSpec& spec);
bool is_changed_by_training(const LoraOptions& lora, const shape::ParamSpec& spec);

// The adapters of one linear layer, or of those that run as one. Indices of parameters.
struct LoraLayer {
  // y[:, first … first + rows) += scale B a, a the next `rank` columns of what A gives.
  struct Part {
    int b = -1;
    int64_t first = 0, rows = 0;
  };
  int a = -1;  // the first of the A of all parts
  int64_t rank = 0;
  float scale = 1;
  float dropout = 0;
  uint64_t noise = 0;        // of the layer, beside the tokens'
  int64_t first_column = 0;  // of the inputs, where a rank has some of them
  std::vector<Part> parts;

  int64_t width() const { return rank * static_cast<int64_t>(parts.size()); }
};
// Finds the adapter of the layer whose weight, or first one, is that parameter; null where it has none.
std::shared_ptr<const LoraLayer> find_lora(const Weights& weights, int first);

// A: uniform in ±1 / √in, which is torch's kaiming_uniform with a = √5; by Philox on (seed, name, index). B: zeros, so
// that the model begins as it was. Commits.
void initialize_lora(Weights& weights, uint64_t seed);

// row [in] += scale up down, of a row of B [rank] and A [rank, in].
void add_low_rank(float scale, std::span<const float> up, std::span<const float> down, std::span<float> row);
// A parameter's values with what its adapter adds, W + scale B A; its own where it has none.
std::vector<float> merged_values(const Weights& weights, int index);

}  // namespace collimate::model
