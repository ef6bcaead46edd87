#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Reads Helium (Kyutai 2025): a Llama whose neighbouring channels rotate together.
ModelShape parse_helium(const Fields& fields, const std::string& family) {
  ModelShape shape =
      read_swiglu_shape(fields, family, {.theta = 1e5, .positions = 4096, .epsilon = 1e-8, .head_dim = 128});
  for (Block& block : shape.blocks) block.attention.output_bias = false;
  return shape;
}

void add_helium_config(const ModelShape& shape, nlohmann::json& config) {
  add_swiglu_config(shape, config);
  config["attention_bias"] = shape.blocks.front().attention.bias;
  config["mlp_bias"] = shape.blocks.front().mlp.bias;
}

}  // namespace

std::vector<Family> helium_families() {
  return {with_usual_keys(family_of("helium", "Helium", parse_helium, add_helium_config, paired(llama_names())))};
}

}  // namespace collimate::shape
