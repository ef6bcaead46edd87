#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Reads Seed-OSS (ByteDance 2025): a Llama with biases of queries, keys and values and, as published, none of the
// output.
ModelShape parse_seed_oss(const Fields& fields, const std::string& family) {
  ModelShape shape = read_swiglu_shape(fields, family, {.positions = 524288, .head_dim = 128});
  for (Block& block : shape.blocks) {
    block.attention.bias = fields.flag_or("attention_bias", true);
    block.attention.output_bias = fields.flag_or("attention_out_bias", false);
  }
  return shape;
}

// Dropout only acts when transformers trains the model; it is written because its default there is 0.1.
void add_seed_oss_config(const ModelShape& shape, nlohmann::json& config) {
  const Block& block = shape.blocks.front();
  add_swiglu_config(shape, config);
  config["attention_bias"] = block.attention.bias;
  config["attention_out_bias"] = block.attention.output_bias;
  config["mlp_bias"] = block.mlp.bias;
  config["attention_dropout"] = config["residual_dropout"] = 0.0;
}

}  // namespace

std::vector<Family> seed_oss_families() {
  return {with_usual_keys(family_of("seed_oss", "SeedOss", parse_seed_oss, add_seed_oss_config, llama_names()))};
}

}  // namespace collimate::shape
