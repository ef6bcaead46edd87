#include "collimate/shape/family.h"
#include "collimate/shape/usual_config.h"

namespace collimate::shape {
namespace {

using nlohmann::json;

constexpr int64_t kUnusedPositions = 2;  // OPT counts positions from 2, whether or not a text is padded

// Reads OPT (Zhang et al. 2022). The model of 350M has its norms behind each half, none behind the last block, and
// embeddings with a width of their own.
ModelShape parse_opt(const Fields& fields, const std::string& family) {
  ModelShape shape = read_sizes(fields, family, kUsualSizes);
  if (const int64_t width = fields.count_or("word_embed_proj_dim", kMaxHidden, shape.hidden); width != shape.hidden)
    shape.embedding_width = width;
  const bool before = fields.flag_or("do_layer_norm_before", true);
  shape.final_norm = before && !fields.flag_or("_remove_final_layer_norm", false);
  set_learned_positions(shape, fields.count_or("max_position_embeddings", kMaxCount, 2048));
  shape.unused_positions = kUnusedPositions;
  shape.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  for (const char* key : {"enable_bias", "layer_norm_elementwise_affine"}) fields.require(key, true);
  for (Block& block : shape.blocks) {
    block.place = before ? NormPlace::kBefore : NormPlace::kAfter;
    block.norm = NormKind::kLayer;
    block.attention.bias = block.attention.output_bias = true;
    block.mlp = gpt2_mlp(fields, "ffn_dim", shape.hidden, "relu");
  }
  return shape;
}

void add_opt_config(const ModelShape& shape, json& config) {
  const Block& block = shape.blocks.front();
  const bool before = block.place == NormPlace::kBefore;
  add_sizes(shape, kUsualSizes, config);
  config["word_embed_proj_dim"] = shape.table_width();
  add_gpt2_mlp(block.mlp, "ffn_dim", config);
  config["max_position_embeddings"] = shape.max_positions;
  config["do_layer_norm_before"] = before;
  config["_remove_final_layer_norm"] = before && !shape.final_norm;
}

}  // namespace

std::vector<Family> opt_families() {
  ModuleNames names = llama_names();
  const std::string decoder = "model.decoder.";
  names.embedding = decoder + "embed_tokens";
  names.positions = decoder + "embed_positions";
  names.project_in = decoder + "project_in";
  names.project_out = decoder + "project_out";
  names.block = decoder + "layers.";
  names.final_norm = decoder + "final_layer_norm";
  names.attention_norm = "self_attn_layer_norm";
  names.attention_output = "self_attn.out_proj";
  names.mlp_norm = "final_layer_norm";
  names.up = {"fc1"};
  names.down = "fc2";
  return {family_of("opt", "OPT", parse_opt, add_opt_config, names)};
}

}  // namespace collimate::shape
