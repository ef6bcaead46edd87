#pragma once

#include <string>

#include "collimate/model/safetensors.h"

namespace collimate::model {

// Gives each F8_E4M3 tensor [rows, columns] the scales that lie beside it: NAME_scale_inv (DeepSeek-V3, Qwen3) or
// NAME_scale (vLLM), which both multiply. There is one number for each block of weight_block_size in config.json's
// quantization_config, or without that one for the tensor. Scales are then no tensors of their own, and the scale of
// the layer's input, which is not quantized here, is dropped. Throws InputError when the config names another method,
// or when a tensor has no scales or scales of other sizes.
void attach_scales(TensorDirectory& files, const std::string& directory);

// Makes one entry of each pair of U8 tensors that gpt-oss (OpenAI 2025) has in place of NAME [.., columns, rows]:
// NAME_blocks [.., rows, columns / 32, 16], whose bytes are two values of four bits each, and NAME_scales [.., rows,
// columns / 32], powers of two. Throws InputError when the scales are missing, or when sizes are others.
void join_mxfp4(TensorDirectory& files, const std::string& directory);

}  // namespace collimate::model
