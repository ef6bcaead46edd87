#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// ERNIE 4.5 (Baidu 2025), its dense model: a Llama whose channels turn with their neighbours, with biases of all linear
// layers of its blocks or none.
ModelShape parse_ernie(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family, 5e5);
  shape.max_positions = fields.count_or("max_position_embeddings", kMaxCount, 131072);
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  const bool biases = fields.flag_or("use_bias", false);
  for (Block& block : shape.blocks) {
    block.norm_epsilon = static_cast<float>(fields.real_or("rms_norm_eps", 1e-5));
    block.attention.head_dim = fields.count_or("head_dim", kMaxHidden, 128);
    block.attention.bias = block.attention.output_bias = block.mlp.bias = biases;
  }
  return shape;
}

void add_ernie_config(const ModelShape& shape, nlohmann::json& config) {
  add_swiglu_config(shape, config);
  config["use_bias"] = shape.blocks.front().mlp.bias;
}

}  // namespace

std::vector<Family> ernie_families() {
  ModuleNames names = llama_names();
  names.paired = true;
  return {with_usual_keys(family_of("ernie4_5", "Ernie4_5", parse_ernie, add_ernie_config, names))};
}

}  // namespace collimate::shape
