// The models that the peers' scripts measure: their shapes, and what work a forward of them is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"

namespace collimate::bench {

inline const std::vector<std::string>& model_names() {
  static const std::vector<std::string> kNames = {"260k", "15m", "110m", "0.5b"};
  return kNames;
}

// Llamas but for 0.5b, a Qwen2; all with tied embeddings. InputError for a name that is not of model_names().
inline shape::ModelShape model_shape(const std::string& name) {
  shape::ModelShape s;
  s.family = "llama";
  s.vocabulary = 32000;
  s.max_positions = 2048;
  s.tied_embeddings = true;
  if (name == "260k") {
    s.vocabulary = 512, s.max_positions = 512;
    s.hidden = 64, s.layers = 5, s.heads = 8, s.kv_heads = 4, s.head_dim = 8, s.intermediate = 172;
  } else if (name == "15m") {
    s.hidden = 288, s.layers = 6, s.heads = s.kv_heads = 6, s.head_dim = 48, s.intermediate = 768;
  } else if (name == "110m") {
    s.hidden = 768, s.layers = 12, s.heads = s.kv_heads = 12, s.head_dim = 64, s.intermediate = 2048;
  } else if (name == "0.5b") {
    s.family = "qwen2";
    s.vocabulary = 151936, s.attention_bias = true, s.norm_epsilon = 1e-6F, s.rope_theta = 1e6;
    s.hidden = 896, s.layers = 24, s.heads = 14, s.kv_heads = 2, s.head_dim = 64, s.intermediate = 4864;
  } else {
    throw base::InputError(base::expectation("model", "260k, 15m, 110m or 0.5b", name));
  }
  return s;
}

// A linear layer, as it runs: q, k and v as one, gate and up as one.
struct LinearLayer {
  std::string name;
  int64_t n = 0, k = 0;  // outputs, inputs
};

inline std::vector<LinearLayer> linear_layers(const shape::ModelShape& s) {
  const int64_t width = s.heads * s.head_dim, kv_width = s.kv_heads * s.head_dim;
  return {{"qkv", width + 2 * kv_width, s.hidden},
          {"out", s.hidden, width},
          {"gate+up", 2 * s.intermediate, s.hidden},
          {"down", s.hidden, s.intermediate}};
}

// FLOPs of one forward over sequences of `tokens` tokens after `before` shared ones, with the head at `heads` of them.
// A multiply-add is two.
inline double flops_of(const shape::ModelShape& s, double sequences, double before, double tokens, double heads) {
  double weights = 0;
  for (const auto& spec : shape::param_specs(s))
    if (spec.kind == shape::ParamKind::kLinear) weights += static_cast<double>(spec.count());
  const double pairs = tokens * before + tokens * (tokens + 1) / 2;
  const double attention = 2.0 * static_cast<double>(s.layers * s.heads * s.head_dim) * pairs;
  return 2.0 * sequences * (tokens * weights + attention + heads * static_cast<double>(s.vocabulary * s.hidden));
}

}  // namespace collimate::bench
