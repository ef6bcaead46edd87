#pragma once

#include "collimate/model/layers.h"

namespace collimate::model {

// Context ranks exchange this so that each one's tokens attend to those of all. Every rank gathers keys and values in
// the order of the batch (Llama Team 2024, arXiv 2407.21783, 3.3.2), so that attention reads them as one rank does.

// Keys and values of all tokens of a batch [T, kv_width + value_width], of this rank's in qkv [T of its own, as of
// attend]: in the step's arena.
const float* gather_keys_and_values(const Step& step, const Attention& attention, const Slot& qkv);

// The way back: `all`, gradients of these that this rank's tokens give, are summed over the ranks to those of this
// rank's keys and values in `own`, of qkv.
void sum_key_and_value_gradients(const Step& step, const Attention& attention, const float* all, float* own);

}  // namespace collimate::model
