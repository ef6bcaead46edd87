#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

// Reads StarCoder2 (Lozhkov et al. 2024): a Llama with layer norms, an MLP with GELU and without a gate, biases in all
// linear layers except the head, and a window in every block.
ModelShape parse_starcoder2(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(fields, family, {.tied = true});
  read_rope(fields, shape);
  set_windows(shape, read_window_or(fields, 0), every_layer);
  fields.require("hidden_act", "gelu_pytorch_tanh");
  const bool biases = fields.flag_or("use_bias", true);
  for (Block& block : shape.blocks) {
    read_layer_norm(fields, "norm_epsilon", block);
    block.attention.bias = block.attention.output_bias = biases;
    block.mlp = {block.mlp.intermediate, /*gated=*/false, Activation::kGeluTanh, biases};
  }
  return shape;
}

void add_starcoder2_config(const ModelShape& shape, nlohmann::json& config) {
  const Block& block = shape.blocks.front();
  add_usual_config(shape, config);
  add_layer_norm(block, "norm_epsilon", config);
  config["hidden_act"] = "gelu_pytorch_tanh";
  config["use_bias"] = block.mlp.bias;
  add_window_size(shape, config);
}

}  // namespace

std::vector<Family> starcoder2_families() {
  ModuleNames names = llama_names();
  names.up = {"mlp.c_fc"};
  names.down = "mlp.c_proj";
  return {family_of("starcoder2", "Starcoder2", parse_starcoder2, add_starcoder2_config, names)};
}

}  // namespace collimate::shape
