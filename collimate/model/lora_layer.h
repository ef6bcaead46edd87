#pragma once

#include "collimate/model/layers.h"
#include "collimate/model/lora.h"

namespace collimate::model {

// out [T, layer.out], which holds the frozen layer's W x + bias, += scale B (A x), by the kernels of linear layers.
// Returns scale A x [T, width], which the backward reads; `wanted`: whether there will be one. Where the step is noisy
// x is here what a dropout keeps of it.
Slot* add_lora(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool wanted);

// Takes dy [T, layer.out] to dA, dB and, where x wants it, what the adapters add to dx. Runs after the layer's own.
void lora_backward(const Step& step, const Linear& layer, Slot& x, Slot& low, const float* dy);

}  // namespace collimate::model
