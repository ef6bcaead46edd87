#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Reads the dense ERNIE 4.5 (Baidu 2025): a Llama whose neighbouring channels rotate together, with biases in all
// linear layers of its blocks or in none.
ModelShape parse_ernie(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(
      fields, family, {.theta = 5e5, .positions = 131072, .epsilon = 1e-5, .head_dim = 128, .tied = true});
  for (Block& block : shape.blocks)
    block.attention.bias = block.attention.output_bias = block.mlp.bias = fields.flag_or("use_bias", false);
  return shape;
}

void add_ernie_config(const ModelShape& shape, nlohmann::json& config) {
  add_swiglu_config(shape, config);
  config["use_bias"] = shape.blocks.front().mlp.bias;
}

}  // namespace

std::vector<Family> ernie_families() {
  return {with_usual_keys(family_of("ernie4_5", "Ernie4_5", parse_ernie, add_ernie_config, paired(llama_names())))};
}

}  // namespace collimate::shape
