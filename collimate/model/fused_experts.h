#pragma once

#include "collimate/model/safetensors.h"
#include "collimate/shape/model_shape.h"

namespace collimate::model {

// transformers 5 holds the experts of a block as two tensors, mlp.experts.gate_up_proj [E, 2 I, H] and down_proj
// [E, H, I], and writes them so where it is not asked for the published form. Makes of them the published form's
// tensors, one for each expert and matrix. InputError where their sizes are others.
void split_fused_experts(TensorDirectory& files, const shape::ModelShape& shape, const std::string& directory);

}  // namespace collimate::model
