#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Reads GPT-2 (Radford et al. 2019): learned positions, layer norms, biases everywhere, and an MLP with GELU.
ModelShape parse_gpt2(const Fields& fields, const std::string& family) {
  ModelShape shape = read_sizes(fields, family, kGpt2Sizes);
  set_learned_positions(shape, fields.count("n_positions", kMaxCount));
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  fields.require("scale_attn_weights", true);
  fields.require("scale_attn_by_inverse_layer_idx", false);
  for (Block& block : shape.blocks) {
    read_layer_norm(fields, "layer_norm_epsilon", block);
    block.attention.bias = block.attention.output_bias = true;
    block.mlp = gpt2_mlp(fields, "n_inner", shape.hidden, "gelu_new");
  }
  return shape;
}

void add_gpt2_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  add_sizes(shape, kGpt2Sizes, config);
  add_gpt2_mlp(block.mlp, "n_inner", config);
  add_layer_norm(block, "layer_norm_epsilon", config);
  config["n_positions"] = config["n_ctx"] = shape.max_positions;
  config["scale_attn_weights"] = true;
}

}  // namespace

std::vector<Family> gpt2_families() {
  ModuleNames names = gpt2_names();
  names.transposed = true;
  return {{"gpt2", "GPT2LMHeadModel", "GPT2ForSequenceClassification", parse_gpt2, add_gpt2_config, names}};
}

}  // namespace collimate::shape
