#pragma once

#include "collimate/model/safetensors.h"
#include "collimate/shape/model_shape.h"

namespace collimate::model {

// Makes tensors of each expert and matrix of those that files have of all experts of a block. In some families these
// are the published form (ParamSpec::stacked). Of others transformers 5 holds mlp.experts.gate_up_proj [E, 2 I, H] and
// down_proj [E, H, I], and writes them so where it is not asked for the published form. InputError where their sizes
// are others.
void split_fused_experts(TensorDirectory& files, const shape::ModelShape& shape, const std::string& directory);

}  // namespace collimate::model
