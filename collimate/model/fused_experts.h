#pragma once

#include "collimate/model/safetensors.h"
#include "collimate/shape/model_shape.h"

namespace collimate::model {

// Splits file tensors that hold all experts of a block into one tensor for each expert and matrix. In some families
// such tensors are the published form (ParamSpec::stacked). For other families transformers 5 holds
// mlp.experts.gate_up_proj [E, 2 I, H] and down_proj [E, H, I], and writes these unless it is asked for the published
// form. Throws InputError when their sizes are others.
void split_fused_experts(TensorDirectory& files, const shape::ModelShape& shape, const std::string& directory);

}  // namespace collimate::model
