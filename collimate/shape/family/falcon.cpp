#include "collimate/base/error.h"
#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

int64_t read_kv_heads(const Fields& fields, int64_t heads, bool newer) {
  if (newer) return fields.count_or("num_kv_heads", heads, heads);
  return fields.flag_or("multi_query", true) ? 1 : heads;
}

// Reads Falcon (Almazrouei et al. 2023): layer norms, an MLP without a gate, and queries, keys and values in one
// tensor. In 7B all heads share one key and value, and both halves read one norm. In 40B and 180B groups of heads share
// them, and each half has a norm. In Falcon 2 (11B) groups share them, and both halves read one norm again.
ModelShape parse_falcon(const Fields& fields, const std::string& family) {
  if (fields.flag_or("alibi", false))
    throw base::InputError(base::expectation(fields.at("alibi"), "false", "true",
                                             "a Falcon that turns queries and keys (7B, 40B, 180B, 11B)"));
  ModelShape shape = read_sizes_alone(fields, family, kUsualSizes);
  read_rope(fields, shape);
  shape.max_positions = fields.count_or("max_position_embeddings", kMaxCount, 2048);
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  const bool newer = fields.flag_or("new_decoder_architecture", false), biases = fields.flag_or("bias", false);
  if (newer) fields.require("parallel_attn", true);
  const bool one_norm = fields.count_or("num_ln_in_parallel_attn", newer ? 2 : 1, newer ? 2 : 1) == 1;
  for (Block& block : shape.blocks) {
    read_layer_norm(fields, "layer_norm_epsilon", block);
    block.parallel = newer || fields.flag_or("parallel_attn", true);
    block.shared_norm = block.parallel && one_norm;
    block.attention.kv_heads = read_kv_heads(fields, block.attention.heads, newer);
    block.attention.bias = block.attention.output_bias = biases;
    block.mlp =
        plain_mlp(fields, fields.count_or("ffn_hidden_size", kMaxHidden, 4 * shape.hidden), "activation", "gelu");
    block.mlp.bias = biases;
  }
  return shape;
}

void add_falcon_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  const bool newer = block.parallel && (block.attention.kv_heads > 1 || !block.shared_norm);
  add_sizes(shape, kUsualSizes, config);
  config["max_position_embeddings"] = shape.max_positions;
  add_layer_norm(block, "layer_norm_epsilon", config);
  config["rope_theta"] = shape.rope_theta;
  config["rope_scaling"] = shape.rope_scaling;
  config["ffn_hidden_size"] = block.mlp.intermediate;
  config["activation"] = activation_name(block.mlp.activation);
  config["alibi"] = false;
  config["bias"] = block.mlp.bias;
  config["parallel_attn"] = block.parallel;
  config["new_decoder_architecture"] = newer;
  config["num_kv_heads"] = block.attention.kv_heads;
  config["multi_query"] = block.attention.kv_heads == 1;
  if (newer) config["num_ln_in_parallel_attn"] = block.shared_norm ? 1 : 2;
}

}  // namespace

std::vector<Family> falcon_families() {
  ModuleNames names = bloom_names();
  names.attention_norm_beside = "ln_attn";
  names.mlp_norm_beside = "ln_mlp";
  names.grouped = true;
  return {family_of("falcon", "Falcon", parse_falcon, add_falcon_config, names)};
}

}  // namespace collimate::shape
