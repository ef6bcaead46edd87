#include "tests/support/tensor/kernels/gemm_avx2tiles.h"

#define amx amx_for_emulation  // the library has the same functions, compiled for AVX-512, in the namespace amx
#include "collimate/tensor/kernels/gemm_amx_kernel.inc"

namespace collimate::tensor::emulated {

void block_by_tiles(const GemmBlock& block) { amx::block_amx(block); }

void pack_right(const float* from, int64_t stride, int64_t depth, int64_t columns, uint16_t* to) {
  amx::pack_right_bf16(from, stride, depth, columns, to);
}

}  // namespace collimate::tensor::emulated
