#pragma once

#include "collimate/tensor/kernels/gemm.h"

namespace collimate::tensor::emulated {

// The kernel of gemm_amx_kernel.inc as it stands, compiled without AVX-512, so that any machine with AVX2 runs it while
// an emulator executes its instructions on tiles. block.left: bf16 [rows][kLeftStride].
void block_by_tiles(const GemmBlock& block);
// Packs the right operand: bf16 panels of `depth` rows of kPanel columns.
void pack_right(const float* from, int64_t stride, int64_t depth, int64_t columns, uint16_t* to);

}  // namespace collimate::tensor::emulated
