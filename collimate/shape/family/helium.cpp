#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Helium (Kyutai 2025): a Llama whose channels turn with their neighbours.
ModelShape parse_helium(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family, 1e5);
  shape.max_positions = fields.count_or("max_position_embeddings", kMaxCount, 4096);
  for (Block& block : shape.blocks) {
    block.norm_epsilon = static_cast<float>(fields.real_or("rms_norm_eps", 1e-8));
    block.attention.head_dim = fields.count_or("head_dim", kMaxHidden, 128);
    block.attention.output_bias = false;
  }
  return shape;
}

void add_helium_config(const ModelShape& shape, nlohmann::json& config) {
  add_swiglu_config(shape, config);
  config["attention_bias"] = shape.blocks.front().attention.bias;
  config["mlp_bias"] = shape.blocks.front().mlp.bias;
}

}  // namespace

std::vector<Family> helium_families() {
  ModuleNames names = llama_names();
  names.paired = true;
  return {with_usual_keys(family_of("helium", "Helium", parse_helium, add_helium_config, names))};
}

}  // namespace collimate::shape
