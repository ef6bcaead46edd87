#include <cmath>

#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

// Reads a rope that is called dynamic and has an alpha: a power of alpha multiplies its base, whatever a text's length
// (NTK-aware scaling, bloc97 2023).
void read_stretched_rope(const Fields& fields, ModelShape& shape) {
  const double channels = static_cast<double>(shape.turned());
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!fields.has(key) || !fields.raw(key).is_object() || shape.rope_scaling.is_null()) continue;
    const Fields rope(fields.raw(key), fields.at(key));
    if (shape.rope_scaling.at("rope_type") != "dynamic" || !rope.has("alpha")) continue;
    shape.rope_theta *= std::pow(rope.real_or("alpha", 1), channels / (channels - 2));
    shape.rope_scaling = nullptr;
  }
}

// Reads Hunyuan's dense models (Tencent 2025): a Llama with norms of heads behind their rotation.
ModelShape parse_hunyuan(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family, {.epsilon = 1e-5});
  read_stretched_rope(fields, shape);
  fields.require("use_qk_norm", true);
  for (Block& block : shape.blocks) {
    block.attention.head_norm = block.attention.norm_behind_turn = true;
    block.mlp.bias = false;
  }
  return shape;
}

void add_hunyuan_config(const ModelShape& shape, json& config) {
  add_swiglu_config(shape, config);
  config["attention_bias"] = shape.blocks.front().attention.bias;
  config["use_qk_norm"] = true;
}

}  // namespace

std::vector<Family> hunyuan_families() {
  ModuleNames names = llama_names();
  names.query_norm = "self_attn.query_layernorm";
  names.key_norm = "self_attn.key_layernorm";
  return {with_usual_keys(family_of("hunyuan_v1_dense", "HunYuanDenseV1", parse_hunyuan, add_hunyuan_config, names))};
}

}  // namespace collimate::shape
