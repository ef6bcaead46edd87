#include "collimate/shape/family.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/usual_config.h"
#include "collimate/shape/usual_mixture.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// In all GLM models a part of each head rotates, and queries, keys and values may have biases but the output has none.
void set_glm_attention(const Fields& fields, ModelShape& shape, bool biased) {
  for (Block& block : shape.blocks) {
    Attention& attention = block.attention;
    read_turned_part(fields, "partial_rotary_factor", 0.5, attention);
    attention.bias = fields.flag_or("attention_bias", biased);
    attention.output_bias = false;
  }
}

// Reads GLM-4 (Zeng et al. 2024): a Llama whose files hold gate and up in one tensor. The models of 2025 (GLM-4-0414,
// GLM-Z1) have a second norm, behind each half.
ModelShape parse_glm(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family, {.positions = 131072, .epsilon = 1.5625e-7, .head_dim = 128});
  for (Block& block : shape.blocks) {
    block.mlp.bias = false;
    if (family == "glm4") block.place = NormPlace::kAround;
  }
  set_glm_attention(fields, shape, /*biased=*/true);
  return shape;
}

// Reads GLM-4.5 and 4.6 (Zeng et al. 2025): experts with DeepSeek-V3's routing, and norms of heads or none. Their files
// hold blocks that predict further tokens, which generation and training do not use.
ModelShape parse_glm_moe(const Fields& fields, const std::string& family) {
  Experts how = read_grouped_routing(fields);
  how.normalized = fields.flag_or("norm_topk_prob", true);
  ModelShape shape = read_mixture(fields, family, how);
  set_glm_attention(fields, shape, /*biased=*/false);
  for (Block& block : shape.blocks) block.attention.head_norm = fields.flag_or("use_qk_norm", false);
  shape.unused_blocks = fields.whole_or("num_nextn_predict_layers", kMaxLayers, 1);
  return shape;
}

void add_turned_part(const ModelShape& shape, json& config) {
  const Attention& attention = shape.blocks.front().attention;
  config["partial_rotary_factor"] = turned_part(attention);
  config["attention_bias"] = attention.bias;
}

void add_glm_config(const ModelShape& shape, json& config) {
  add_swiglu_config(shape, config);
  add_turned_part(shape, config);
}

void add_glm_moe_config(const ModelShape& shape, json& config) {
  add_usual_config(shape, config);
  add_grouped_config(shape, config);
  add_turned_part(shape, config);
  config["use_qk_norm"] = shape.blocks.front().attention.head_norm;
  config["num_nextn_predict_layers"] = 0;
}

}  // namespace

std::vector<Family> glm_families() {
  ModuleNames names = llama_names();
  names.up = {"mlp.gate_up_proj"};
  names.behind_attention = "post_self_attn_layernorm";
  names.behind_mlp = "post_mlp_layernorm";
  names.paired = true;
  return {family_of("glm", "Glm", parse_glm, add_glm_config, names),
          family_of("glm4", "Glm4", parse_glm, add_glm_config, names),
          family_of("glm4_moe", "Glm4Moe", parse_glm_moe, add_glm_moe_config, mixture_names("mlp.shared_experts"))};
}

}  // namespace collimate::shape
