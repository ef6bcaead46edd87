#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Reads StableLM (Bellagente et al. 2024): a Llama with layer norms, in which a part of each head rotates. Where its
// halves are parallel, both read one norm.
ModelShape parse_stablelm(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family);
  fields.require("qk_layernorm", false);
  for (Block& block : shape.blocks) {
    read_layer_norm(fields, "layer_norm_eps", block);
    block.parallel = block.shared_norm = fields.flag_or("use_parallel_residual", false);
    block.attention.head_dim = shape.hidden / block.attention.heads;
    read_turned_part(fields, "partial_rotary_factor", 0.25, block.attention);
    block.attention.bias = fields.flag_or("use_qkv_bias", false);
    block.attention.output_bias = block.mlp.bias = false;
  }
  return shape;
}

void add_stablelm_config(const ModelShape& shape, nlohmann::json& config) {
  const Block& block = shape.blocks.front();
  const Attention& attention = block.attention;
  add_usual_config(shape, config);
  config.erase("head_dim");
  config["hidden_act"] = "silu";
  add_layer_norm(block, "layer_norm_eps", config);
  config["use_parallel_residual"] = block.parallel;
  config["use_qkv_bias"] = attention.bias;
  config["qk_layernorm"] = false;
  config["partial_rotary_factor"] = turned_part(attention);
}

}  // namespace

std::vector<Family> stablelm_families() {
  return {with_usual_keys(family_of("stablelm", "StableLm", parse_stablelm, add_stablelm_config, llama_names()))};
}

}  // namespace collimate::shape
