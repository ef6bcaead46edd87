#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_windows.h"

namespace collimate::shape {
namespace {

// Reads Phi-3 (Abdin et al. 2024): a Llama with a window in every block, whose files hold queries, keys and values in
// one tensor, and gate and up in another. In Phi-4-mini a part of each head rotates.
ModelShape parse_phi3(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family);
  set_windows(shape, read_window_or(fields, 0), every_layer);
  for (Block& block : shape.blocks) {
    read_turned_part(fields, "partial_rotary_factor", 1.0, block.attention);
    block.attention.bias = block.attention.output_bias = block.mlp.bias = false;
  }
  return shape;
}

void add_phi3_config(const ModelShape& shape, nlohmann::json& config) {
  add_swiglu_config(shape, config);
  const Attention& attention = shape.blocks.front().attention;
  config["partial_rotary_factor"] = turned_part(attention);
  if (shape.rope_scaling.contains("original_max_position_embeddings"))
    config["original_max_position_embeddings"] = shape.rope_scaling["original_max_position_embeddings"];
  add_window_size(shape, config);
}

}  // namespace

std::vector<Family> phi3_families() {
  ModuleNames names = llama_names();
  names.query_key_value = {"self_attn.qkv_proj"};
  names.up = {"mlp.gate_up_proj"};
  return {with_usual_keys(family_of("phi3", "Phi3", parse_phi3, add_phi3_config, names))};
}

}  // namespace collimate::shape
