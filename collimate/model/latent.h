#pragma once

#include "collimate/model/layers.h"

namespace collimate::model {

// At most this many cached tokens are made into keys and values at once, which bounds the memory for that.
constexpr int64_t kMostExpanded = 256;

// These layers, not a single linear one, make queries, keys and values in latent attention (DeepSeek-AI 2024, 2.1).
struct LatentLayer {
  Attention how;
  Linear query_down;  // where `how` compresses queries
  Norm query_norm;
  Linear query;
  Linear down;  // to the key that heads share, and the latent
  Norm norm;    // of the latent
  Linear up;
};
LatentLayer find_latent(const Weights& weights, int segment);

// Returns queries, keys and values of x [T, H], side by side as attend() reads them, turned by their positions.
Slot* latent_heads(Step& step, const LatentLayer& layer, Slot* x);

}  // namespace collimate::model
