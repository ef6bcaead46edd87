#pragma once

#include "collimate/model/layers.h"

namespace collimate::model {

// Context ranks exchange keys and values so that each rank's tokens attend to the tokens of all ranks. Every rank
// gathers them in the order of the batch (Llama Team 2024, arXiv 2407.21783, 3.3.2), so that attention reads them as
// one rank does.

// Returns keys and values of all tokens of a batch [T, kv_width + value_width], in the step's arena. Each rank gives
// those of its own tokens, which lie in `qkv` as attend() takes it.
const float* gather_keys_and_values(const Step& step, const Attention& attention, const Slot& qkv);

// Does the reverse for gradients: `all` [T, kv_width + value_width] has the gradients that this rank's tokens give to
// all keys and values. Sums them over the ranks and writes those of this rank's tokens to `own`, the gradient of qkv.
void sum_key_and_value_gradients(const Step& step, const Attention& attention, const float* all, float* own);

}  // namespace collimate::model
