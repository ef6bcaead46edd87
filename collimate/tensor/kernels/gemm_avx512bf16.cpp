#include "collimate/tensor/kernels/gemm_amx_fma_kernel.inc"
#include "collimate/tensor/kernels/gemm_dot_kernel.inc"

namespace collimate::tensor::avx512_bf16 {

const GemmKernels kGemm = gemm_table({&pack_rows_rounded, &pack_columns_rounded, &block_amx_by_fma, kLeftStride},
                                     {&pack_rows_pairs, &pack_columns_pairs, &block_dot, kLeftStride / 2});

}  // namespace collimate::tensor::avx512_bf16
