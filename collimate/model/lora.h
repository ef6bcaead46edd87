#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"

namespace collimate::model {

class Weights;

// These are the options of low-rank adapters (Hu et al. 2021): beside a linear layer W [out, in] of the blocks run A
// [rank, in] and B [out, rank], y = W x + bias + scale B (A x). Adapters are parameters of the same Weights, behind the
// model's own and in one segment of their own. Training changes only them, a score or value head, and the modules named
// in modules_to_save. W is not fused with them and stays as it is, so that a row has the bits of lora_layer.h wherever
// it is computed. With `dora` the rows of W + scale B A are directions, and a vector m [out] of lengths is trained
// beside A and B: y = m / ‖W + scale B A‖ ⊙ (W x + scale B (A x)) + bias, where ‖·‖, the length of each row, is a
// constant in the gradient (Liu et al. 2024, arXiv 2402.09353, eq. 5 and section 4.3, and PEFT). Parameters have the
// names of PEFT's files.
struct LoraOptions {
  int64_t rank = 0;  // 0: no adapters
  double alpha = 32;
  bool rslora = false;  // scale alpha / √rank (Kalajdzievski 2023) instead of alpha / rank
  // Names layers by the last parts of their names, as PEFT's target_modules: "q_proj", "mlp.c_proj"; "all-linear": all.
  std::vector<std::string> targets = {"all-linear"};
  double dropout = 0;  // training drops this share of each adapter's inputs, by TokenBatch::noise
  // Names modules outside the blocks that are trained whole, in the same way: "embed_tokens", "lm_head" (as in PEFT).
  std::vector<std::string> modules_to_save = {};
  bool dora = false;  // weight-decomposed adapters; without dropout
  // Names layers with a rank and an alpha of their own by the whole names of their modules.
  struct Own {
    int64_t rank = 0;
    double alpha = 0;
  };
  std::map<std::string, Own> own = {};

  bool on() const { return rank > 0; }
  // These are of all layers, or of the layer with that weight.
  float scale() const;
  float scale_of(const shape::ParamSpec& weight) const;
  int64_t rank_of(const shape::ParamSpec& weight) const;
};

// Returns the parameters of a shape, and behind them those of adapters; the A of layers that run as one also run as
// one. Throws InputError for a target that names no linear layer of the blocks, and for a module to save that is no
// module outside of them. The head of a language model may be named even where the model has another head.
std::vector<shape::ParamSpec> model_params(const shape::ModelShape& shape, const LoraOptions& lora);
// Returns the targets, with "all-linear" replaced by the names that it stands for.
std::vector<std::string> lora_targets(const shape::ModelShape& shape, const LoraOptions& lora);
// These return whether a parameter belongs to an adapter, whether it is the B of one, and whether training changes it.
inline bool is_adapter(const shape::ParamSpec& spec) { return spec.part == shape::Part::kAdapter; }
bool is_adapter_b(const shape::ParamSpec& spec);
// Returns the name of a parameter of the adapter of that weight of a layer, by how such names end.
inline constexpr std::string_view kAdapterA = ".lora_A.weight", kAdapterB = ".lora_B.weight",
                                  kAdapterLengths = ".lora_magnitude_vector";
std::string adapter_name(const shape::ParamSpec& weight, std::string_view end);
bool is_changed_by_training(const LoraOptions& lora, const shape::ParamSpec& spec);

// Names the adapters of one linear layer, or of layers that run as one, by indices of parameters.
struct LoraLayer {
  // Each part adds y[:, first … first + rows) += scale B a, where a is the next `rank` columns of what A gives.
  struct Part {
    int b = -1;
    int64_t rank = 0;
    int64_t first = 0, rows = 0;
    int lengths = -1;  // with DoRA; -1: none
  };
  int a = -1;         // the first of the A of all parts
  int64_t width = 0;  // of all parts: the sum of their ranks
  float scale = 1;
  std::vector<float> scales = {};  // [width] where parts differ in theirs, in place of `scale`
  float dropout = 0;
  uint64_t noise = 0;        // dropout key of the layer, which is used with the tokens' keys
  int64_t first_column = 0;  // number of this rank's first input, where ranks have some each
  bool dora = false;
  std::vector<Part> parts;
};
// Finds the adapters of the layer whose only or first weight is parameter `first`; null where it has none.
std::shared_ptr<const LoraLayer> find_lora(const Weights& weights, int first);

// Initialises A uniformly in ±1 / √in, which is torch's kaiming_uniform with a = √5, by Philox on (seed, name,
// index), B with zeros, and lengths with those of W's rows, so that the model begins as it was. Commits.
void initialize_lora(Weights& weights, uint64_t seed);

// Adds scale · up · down to `row` [in], where `up` is a row of B [rank] and `down` is A [rank, in].
void add_low_rank(float scale, std::span<const float> up, std::span<const float> down, std::span<float> row);
// Scales a row to a length. A row of zeros stays as it is, as it has no direction.
void set_length(float length, std::span<float> row);
// Returns a parameter's values with what its adapter adds, W + scale B A, with DoRA by lengths of rows; the plain
// values where it has no adapter.
std::vector<float> merged_values(const Weights& weights, int index);

}  // namespace collimate::model
