#pragma once

#include <string>

#include "collimate/model/safetensors.h"

namespace collimate::model {

// Gives each F8_E4M3 tensor [rows, columns] the scales that lie beside it, as config.json's quantization_config says:
// NAME_scale_inv (DeepSeek-V3, Qwen3) or NAME_scale (vLLM), which both multiply; one number for each block of
// weight_block_size, or where it has none one for the tensor. They are no tensors of their own then, nor is the scale
// of the layer's input, which is not quantized here. InputError where the config names another method, where a tensor
// has no scales, or where their sizes are others.
void attach_scales(TensorDirectory& files, const std::string& directory);

}  // namespace collimate::model
