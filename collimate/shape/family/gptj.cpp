#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Reads GPT-J (Wang and Komatsuzaki 2021): attention and MLP read one norm of the stream, neighbouring channels rotate
// together in the leading part of each head, and the head has biases.
ModelShape parse_gptj(const Fields& fields, const std::string& family) {
  ModelShape shape = read_sizes(fields, family, kGpt2Sizes);
  shape.max_positions = fields.count_or("n_positions", kMaxCount, 2048);
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  shape.head_bias = true;
  fields.require("scale_attn_weights", true);
  for (Block& block : shape.blocks) {
    block.parallel = block.shared_norm = true;
    read_layer_norm(fields, "layer_norm_epsilon", block);
    block.attention.rotary_dim = fields.count_or("rotary_dim", kMaxHidden, 64);
    block.mlp = gpt2_mlp(fields, "n_inner", shape.hidden, "gelu_new");
  }
  return shape;
}

void add_gptj_config(const ModelShape& shape, nlohmann::json& config) {
  const Block& block = shape.blocks.front();
  add_sizes(shape, kGpt2Sizes, config);
  add_gpt2_mlp(block.mlp, "n_inner", config);
  add_layer_norm(block, "layer_norm_epsilon", config);
  config["n_positions"] = shape.max_positions;
  config["rotary_dim"] = block.attention.turned();
}

}  // namespace

std::vector<Family> gptj_families() {
  ModuleNames names = gpt2_names();
  names.query_key_value = {"attn.q_proj", "attn.k_proj", "attn.v_proj"};
  names.attention_output = "attn.out_proj";
  names.up = {"mlp.fc_in"};
  names.down = "mlp.fc_out";
  names.paired = true;
  return {family_of("gptj", "GPTJ", parse_gptj, add_gptj_config, names)};
}

}  // namespace collimate::shape
