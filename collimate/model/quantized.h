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

// Makes one entry of each pair of U8 tensors that gpt-oss (OpenAI 2025) has in place of NAME [.., columns, rows]:
// NAME_blocks [.., rows, columns / 32, 16], whose bytes are two values of four bits each, and NAME_scales [.., rows,
// columns / 32], powers of two. InputError where one of a pair is missing, or its sizes are others.
void join_mxfp4(TensorDirectory& files, const std::string& directory);

}  // namespace collimate::model
