#include "collimate/tensor/kernels/gemm_amx_kernel.inc"
#include "collimate/tensor/kernels/gemm_dot_kernel.inc"

namespace collimate::tensor::amx {

const GemmKernels kGemm = gemm_table({&pack_rows_pairs, &pack_columns_pairs, &block_amx, kLeftStride / 2},
                                     {&pack_rows_pairs, &pack_columns_pairs, &block_dot, kLeftStride / 2});

}  // namespace collimate::tensor::amx
