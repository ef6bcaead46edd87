#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Reads Nemotron-4 and Minitron (NVIDIA 2024): layer norms that multiply by 1 + weight, an MLP without a gate and with
// squared ReLU, and a part of each head that rotates. Arcee (2025) is a Llama with such an MLP, and Jais 2 (Inception
// 2025) a Llama with such an MLP, layer norms and biases.
ModelShape parse_nemotron(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(fields, family, {.positions = 4096, .epsilon = 1e-5});
  read_rope(fields, shape);
  fields.require("hidden_act", "relu2");
  for (Block& block : shape.blocks) {
    block.mlp = {block.mlp.intermediate, /*gated=*/false, Activation::kReluSquared, block.mlp.bias};
    if (family == "arcee") continue;
    read_layer_norm(fields, family == "jais2" ? "layer_norm_eps" : "norm_eps", block);
    if (family == "jais2") {
      block.attention.bias = block.attention.output_bias = fields.flag_or("attention_bias", true);
      block.mlp.bias = fields.flag_or("mlp_bias", true);
      continue;
    }
    block.norm = NormKind::kLayerOffset;
    read_turned_part(fields, "partial_rotary_factor", 0.5, block.attention);
  }
  return shape;
}

void add_nemotron_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  add_usual_config(shape, config);
  config["hidden_act"] = activation_name(block.mlp.activation);
  config["attention_bias"] = block.attention.bias;
  config["mlp_bias"] = block.mlp.bias;
  if (shape.family == "arcee") return;
  add_layer_norm(block, shape.family == "jais2" ? "layer_norm_eps" : "norm_eps", config);
  if (shape.family == "nemotron") config["partial_rotary_factor"] = turned_part(block.attention);
}

}  // namespace

std::vector<Family> nemotron_families() {
  ModuleNames names = llama_names();
  names.up = {"mlp.up_proj"};
  return {family_of("nemotron", "Nemotron", parse_nemotron, add_nemotron_config, names),
          family_of("arcee", "Arcee", parse_nemotron, add_nemotron_config, names),
          family_of("jais2", "Jais2", parse_nemotron, add_nemotron_config, names)};
}

}  // namespace collimate::shape
