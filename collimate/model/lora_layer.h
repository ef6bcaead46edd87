#pragma once

#include "collimate/model/layers.h"
#include "collimate/model/lora.h"

namespace collimate::model {

// These are what the backward of adapters reads.
struct LoraKept {
  Slot* low = nullptr;         // [T, width] scale A x; null without adapters
  const float* sum = nullptr;  // [T, layer.out] with DoRA: W x + scale B (A x)
};

// Adds scale B (A x) to out [T, layer.out], which holds the frozen layer's W x + bias, by the kernels of linear layers.
// `wanted` says whether there will be a backward. In a step with dropout noise, x in these formulas is what the dropout
// keeps of it.
LoraKept add_lora(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool wanted);
// Sets out [T, layer.out] to what a layer with DoRA's adapters gives (LoraOptions), or adds that to it.
LoraKept decomposed_forward(Step& step, const Linear& layer, const Slot& x, const Slot& out, bool accumulate);

// Adds to dA and dB and, where x wants a gradient, the adapters' part to dx, from dy [T, layer.out], of a layer with
// DoRA from what decomposed_backward() gives. Runs after the backward of the layer itself.
void lora_backward(const Step& step, const Linear& layer, Slot& x, Slot& low, const float* dy);
// Adds to the gradients of lengths, from dy [T, layer.out]. Returns the gradient of W x + scale B (A x), in the step's
// arena.
const float* decomposed_backward(const Step& step, const Linear& layer, const LoraKept& kept, int64_t rows,
                                 const float* dy);

}  // namespace collimate::model
