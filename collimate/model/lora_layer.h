#pragma once

#include "collimate/model/layers.h"
#include "collimate/model/lora.h"

namespace collimate::model {

// Adds scale B (A x) to out [T, layer.out], which holds the frozen layer's W x + bias, by the kernels of linear layers.
// Returns scale A x [T, width], which the backward reads; `wanted` says whether there will be a backward. In a step
// with dropout noise, x in these formulas is what the dropout keeps of it.
Slot* add_lora(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool wanted);

// Adds to dA and dB and, where x wants a gradient, the adapters' part to dx, from dy [T, layer.out]. `low` is what
// add_lora returned. Runs after the backward of the layer itself.
void lora_backward(const Step& step, const Linear& layer, Slot& x, Slot& low, const float* dy);

}  // namespace collimate::model
