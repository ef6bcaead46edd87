#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collimate/shape/model_shape.h"

namespace collimate::shape {

// An Outline holds the numbers of a decoder that decide what it costs. Unlike a ModelShape it can also describe
// families that Collimate cannot run: a plan may be made for any model.
struct Outline {
  std::string name;
  int64_t layers = 0, hidden = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t intermediate = 0, vocabulary = 0;
  bool gated = true;  // the MLP has three matrices, else two
  bool tied = false;
  int64_t positions = 0;  // rows of a learned table of positions; 0: there is none
  Experts experts = {};
  int64_t dense_layers = 0;  // layers with a plain MLP in place of experts, taken as the first ones
  Latent latent = {};
  bool norms_around = false;  // a norm or a factor behind each half of a layer
  bool norm_of_all = false;   // queries have one norm over all of their heads: tp cannot divide them
  int64_t embedding = 0;      // width of a table that is projected to and from the stream; 0: hidden
  bool operator==(const Outline&) const = default;
};

Outline outline_of(const ModelShape& shape);
// Returns a shape with these numbers, without biases, for plans that count parameters. Its parameters have the names of
// some family.
ModelShape shape_of(const Outline& model);
// Reads a Hugging Face config.json of any dense, mixture-of-experts or latent-attention decoder by its usual keys.
// Throws InputError, which names file and key.
Outline parse_outline(const nlohmann::json& config, const std::string& where);
// Returns the model of a name of the table (`llama2-70b`; case and punctuation do not matter), of a plain decoder's
// size in billions (`dense-300b`), or of a directory with config.json. Throws InputError with the nearest name for
// others.
Outline find_outline(const std::string& name);
// Returns every name of the table, by size.
std::vector<std::string> outline_names();
// These bound the billions of parameters of a model that sized_outline makes.
constexpr double kLeastDense = 0.05, kMostDense = 1e5;
// Reads `dense-300b` as a decoder with LLaMA's proportions and nearly that many parameters, for sizes without a public
// model. Returns nothing for other names.
std::optional<Outline> sized_outline(const std::string& name);
// Returns the model of the table with that name, or null.
const Outline* outline_named(const std::string& name);
// Returns the known name that is nearest, by family and size, to an unknown one: `llama2-7b` for `lama-7b` and for
// `meta/Llama-2-8b`.
std::string nearest_outline(const std::string& name);
// Throws InputError, which suggests the nearest name or directory.
[[noreturn]] void throw_unknown_outline(const std::string& name);

// Return the number of matrix elements of all layers, and of those that one token meets, without embedding and head.
double block_parameters(const Outline& model);
double active_block_parameters(const Outline& model);
// Returns the elements of one vocabulary × hidden table.
double table_parameters(const Outline& model);
double total_parameters(const Outline& model);
double active_parameters(const Outline& model);
// Returns the elements of adapters (LoRA) of that rank: two thin matrices beside every linear layer except routed
// experts and their router.
double adapter_parameters(const Outline& model, int64_t rank);
// Returns the elements that a key-value cache keeps per token and layer; with latent attention those of the latents,
// whatever `latent.cached` says.
double cached_values(const Outline& model);

}  // namespace collimate::shape
