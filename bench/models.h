// These are the shapes of the models that the peers' scripts measure, and the FLOPs of a forward pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/shape/model_shape.h"
#include "collimate/shape/outline.h"

namespace collimate::bench {

inline const std::vector<std::string>& model_names() {
  static const std::vector<std::string> kNames = {"260k", "15m", "110m", "0.5b"};
  return kNames;
}

inline void add_blocks(shape::ModelShape& s, int64_t hidden, size_t layers, const shape::Attention& attention,
                       int64_t intermediate) {
  s.hidden = hidden;
  shape::Block block;
  block.attention = attention;
  block.mlp.intermediate = intermediate;
  s.blocks.assign(layers, block);
}

// Returns the shape of a model: Llamas, except 0.5b, a Qwen2, all with tied embeddings. A name with a slash is a
// directory with config.json. Throws InputError for any other name that is not in model_names().
inline shape::ModelShape model_shape(const std::string& name) {
  if (name.find('/') != std::string::npos) return shape::read_model_shape(name);
  shape::ModelShape s;
  s.family = "llama";
  s.vocabulary = 32000;
  s.max_positions = 2048;
  s.tied_embeddings = true;
  if (name == "260k") {
    s.vocabulary = 512, s.max_positions = 512;
    add_blocks(s, 64, 5, {.heads = 8, .kv_heads = 4, .head_dim = 8}, 172);
  } else if (name == "15m") {
    add_blocks(s, 288, 6, {.heads = 6, .kv_heads = 6, .head_dim = 48}, 768);
  } else if (name == "110m") {
    add_blocks(s, 768, 12, {.heads = 12, .kv_heads = 12, .head_dim = 64}, 2048);
  } else if (name == "0.5b") {
    s.family = "qwen2";
    s.vocabulary = 151936, s.rope_theta = 1e6;
    add_blocks(s, 896, 24, {.heads = 14, .kv_heads = 2, .head_dim = 64, .bias = true}, 4864);
    for (shape::Block& block : s.blocks) block.norm_epsilon = 1e-6F;
  } else {
    throw base::InputError(base::expectation("model", "260k, 15m, 110m or 0.5b", name));
  }
  return s;
}

// A LinearLayer is a linear layer as it runs: q, k and v are one layer, and so are gate and up.
struct LinearLayer {
  std::string name;
  int64_t n = 0, k = 0;  // outputs, inputs
};

inline std::vector<LinearLayer> linear_layers(const shape::ModelShape& s) {
  const shape::Block& block = s.blocks.front();
  const int64_t width = block.attention.query_width();
  return {{"qkv", width + 2 * block.attention.kv_width(), s.hidden},
          {"out", s.hidden, width},
          {"gate+up", block.mlp.up_width(), s.hidden},
          {"down", s.hidden, block.mlp.intermediate}};
}

// Returns the FLOPs of one forward over sequences of `tokens` tokens each, after `before` shared tokens that are not
// computed, with the head at `heads` tokens of each. A multiply-add counts as two. Of a mixture's experts, only those
// that a token is routed to count.
inline double flops_of(const shape::ModelShape& s, double sequences, double before, double tokens, double heads) {
  const double weights = shape::active_block_parameters(shape::outline_of(s));
  const double pairs = tokens * before + tokens * (tokens + 1) / 2;
  const double attention = 2.0 * static_cast<double>(s.layers() * s.blocks.front().attention.query_width()) * pairs;
  return 2.0 * sequences * (tokens * weights + attention + heads * static_cast<double>(s.vocabulary * s.hidden));
}

}  // namespace collimate::bench
