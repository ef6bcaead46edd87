#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// The numbers of a decoder that decide what it costs. Unlike ModelShape it also describes families that Collimate
// cannot run: a plan may be made for any model.
struct Outline {
  std::string name;
  int64_t layers = 0, hidden = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t intermediate = 0, vocabulary = 0;
  bool gated = true;  // three matrices in the MLP, else two
  bool tied = false;
  int64_t positions = 0;  // rows of a learned table of positions
  Experts experts = {};
  int64_t dense_layers = 0;  // leading layers with a plain MLP in place of experts
  Latent latent = {};
  bool norms_around = false;  // a norm, or a factor, behind each half of a layer
  bool norm_of_all = false;   // queries have one norm over all of their heads: tp cannot divide them
  int64_t embedding = 0;      // width of a table that is projected to and from the stream; 0: hidden
  bool operator==(const Outline&) const = default;
};

Outline outline_of(const ModelShape& shape);
// A model of these numbers, without biases: for plans that go by parameters. Its names are those of some family.
ModelShape shape_of(const Outline& model);
// A Hugging Face config.json of any dense, mixture-of-experts or latent-attention decoder, by its usual keys.
// InputError naming file and key.
Outline parse_outline(const nlohmann::json& config, const std::string& where);
// A name of the table (`llama2-70b`; case and punctuation do not matter), a plain decoder of a size in billions
// (`dense-300b`) or a directory with config.json. InputError with the nearest name.
Outline find_outline(const std::string& name);
// Every name of the table, by size.
std::vector<std::string> outline_names();
// Billions of parameters of a model that sized_outline makes.
constexpr double kLeastDense = 0.05, kMostDense = 1e5;
// `dense-300b`: a decoder with LLaMA's proportions and nearly that many parameters, for sizes that have no public
// model.
std::optional<Outline> sized_outline(const std::string& name);
// The model of the table with that name, or null.
const Outline* outline_named(const std::string& name);
// The name that find_outline knows which is nearest to one that it does not, by family and size: `llama2-7b` of
// `lama-7b` and of `meta/Llama-2-8b`.
std::string nearest_outline(const std::string& name);
// InputError with that name.
[[noreturn]] void throw_unknown_outline(const std::string& name);

// Matrix elements of all layers; those that one token meets; both without embedding and head.
double block_parameters(const Outline& model);
double active_block_parameters(const Outline& model);
// One vocabulary × hidden table.
double table_parameters(const Outline& model);
double total_parameters(const Outline& model);
double active_parameters(const Outline& model);
// Elements of adapters (LoRA) of that rank: two thin matrices beside every linear layer but routed experts and their
// router.
double adapter_parameters(const Outline& model, int64_t rank);
// Elements kept per token and layer in a KV cache.
double cached_values(const Outline& model);

}  // namespace collimate::shape
