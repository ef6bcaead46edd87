#include "collimate/shape/outline.h"

namespace collimate::shape {
namespace {

std::string family_of(const Outline& model) {
  if (model.latent.kv_rank > 0) return "deepseek_v3";
  if (model.experts.count > 0) return "qwen2_moe";
  return model.gated ? "llama" : "opt";
}

}  // namespace

ModelShape shape_of(const Outline& model) {
  ModelShape shape;
  shape.family = family_of(model);
  shape.vocabulary = model.vocabulary;
  shape.hidden = model.hidden;
  shape.max_positions = model.positions;
  shape.learned_positions = model.positions > 0;
  shape.embedding_width = model.embedding;
  shape.tied_embeddings = model.tied;
  Block block;
  if (model.norms_around) block.place = NormPlace::kAround;
  block.attention.heads = model.heads;
  block.attention.kv_heads = model.kv_heads;
  block.attention.head_dim = model.head_dim;
  block.attention.latent = model.latent;
  block.mlp.intermediate = model.intermediate;
  block.mlp.gated = model.gated;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    block.mlp.experts = layer < model.dense_layers ? Experts() : model.experts;
    shape.blocks.push_back(block);
  }
  return shape;
}

}  // namespace collimate::shape
