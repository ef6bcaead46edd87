#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Reads Phi-1, Phi-1.5 and Phi-2 (Gunasekar et al. 2023): both halves read one norm, a part of each head rotates, and
// all linear layers have biases, also the head.
ModelShape parse_phi(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(fields, family);
  read_rope(fields, shape);
  fields.require("qk_layernorm", false);
  shape.head_bias = true;
  for (Block& block : shape.blocks) {
    read_layer_norm(fields, "layer_norm_eps", block);
    block.parallel = block.shared_norm = true;
    read_turned_part(fields, "partial_rotary_factor", 0.5, block.attention);
    block.attention.bias = block.attention.output_bias = true;
    block.mlp = plain_mlp(fields, block.mlp.intermediate, "hidden_act", "gelu_new");
  }
  return shape;
}

void add_phi_config(const ModelShape& shape, nlohmann::json& config) {
  const Block& block = shape.blocks.front();
  const Attention& attention = block.attention;
  add_usual_config(shape, config);
  config["hidden_act"] = activation_name(block.mlp.activation);
  add_layer_norm(block, "layer_norm_eps", config);
  config["qk_layernorm"] = false;
  config["partial_rotary_factor"] = turned_part(attention);
}

}  // namespace

std::vector<Family> phi_families() {
  ModuleNames names = llama_names();
  names.attention_output = "self_attn.dense";
  names.up = {"mlp.fc1"};
  names.down = "mlp.fc2";
  names.final_norm = "model.final_layernorm";
  return {family_of("phi", "Phi", parse_phi, add_phi_config, names)};
}

}  // namespace collimate::shape
