#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Reads GPT-NeoX and Pythia (Black et al. 2022, Biderman et al. 2023): a part of each head rotates, and attention and
// MLP read the same stream.
ModelShape parse_gpt_neox(const Fields& fields, const std::string& family) {
  ModelShape shape = read_usual_shape(fields, family);
  Block block = shape.blocks.front();
  read_layer_norm(fields, "layer_norm_eps", block);
  block.parallel = fields.flag_or("use_parallel_residual", true);
  block.attention.bias = block.attention.output_bias = fields.flag_or("attention_bias", true);
  read_rope(fields, shape, 1e4, "rotary_emb_base");
  read_turned_part(fields, "rotary_pct", 0.25, block.attention);
  block.mlp = plain_mlp(fields, block.mlp.intermediate, "hidden_act", "gelu");
  shape.blocks.assign(shape.blocks.size(), block);
  return shape;
}

void add_gpt_neox_config(const ModelShape& shape, nlohmann::json& config) {
  const Block& block = shape.blocks.front();
  const Attention& attention = block.attention;
  add_usual_config(shape, config);
  for (const char* key : {"rope_theta", "num_key_value_heads", "head_dim"}) config.erase(key);
  config["hidden_act"] = activation_name(block.mlp.activation);
  add_layer_norm(block, "layer_norm_eps", config);
  config["use_parallel_residual"] = block.parallel;
  config["attention_bias"] = attention.bias;
  config["rotary_emb_base"] = shape.rope_theta;
  config["rotary_pct"] = static_cast<double>(attention.rotary_dim) / static_cast<double>(attention.head_dim);
}

}  // namespace

std::vector<Family> gpt_neox_families() {
  ModuleNames names = llama_names();
  names.embedding = "gpt_neox.embed_in";
  names.block = "gpt_neox.layers.";
  names.query_key_value = {"attention.query_key_value"};
  names.attention_output = "attention.dense";
  names.up = {"mlp.dense_h_to_4h"};
  names.down = "mlp.dense_4h_to_h";
  names.final_norm = "gpt_neox.final_layer_norm";
  names.head = "embed_out";
  names.interleaved = true;
  return {family_of("gpt_neox", "GPTNeoX", parse_gpt_neox, add_gpt_neox_config, names)};
}

}  // namespace collimate::shape
