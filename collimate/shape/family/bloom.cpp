#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

// Reads BLOOM (Scao et al. 2022): GPT-2's blocks, whose only positions are in the scores (ALiBi, Press et al. 2022),
// and a norm behind the embedding. Older configs have other keys for sizes.
ModelShape parse_bloom(const Fields& fields, const std::string& family) {
  const auto either = [&](const char* newer, const char* older) { return fields.has(newer) ? newer : older; };
  ModelShape shape = read_sizes(fields, family,
                                {either("hidden_size", "n_embed"), either("num_hidden_layers", "n_layer"),
                                 either("num_attention_heads", "n_head")});
  shape.max_positions = fields.count_or("seq_length", kMaxCount, 2048);
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  shape.embedding_norm = true;
  fields.require("apply_residual_connection_post_layernorm", false);
  for (Block& block : shape.blocks) {
    read_layer_norm(fields, "layer_norm_epsilon", block);
    block.attention.rotary = false;
    block.attention.alibi = block.attention.bias = block.attention.output_bias = true;
    block.mlp = {4 * shape.hidden, /*gated=*/false, Activation::kGeluTanh, /*bias=*/true};
  }
  return shape;
}

void add_bloom_config(const ModelShape& shape, nlohmann::json& config) {
  add_sizes(shape, {"hidden_size", "n_layer", "n_head"}, config);
  config["seq_length"] = shape.max_positions;
  add_layer_norm(shape.blocks.front(), "layer_norm_epsilon", config);
}

}  // namespace

std::vector<Family> bloom_families() {
  ModuleNames names = bloom_names();
  names.embedding_norm = "transformer.word_embeddings_layernorm";
  names.interleaved = true;
  return {family_of("bloom", "Bloom", parse_bloom, add_bloom_config, names)};
}

}  // namespace collimate::shape
