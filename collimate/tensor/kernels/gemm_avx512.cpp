#include "collimate/tensor/kernels/gemm_amx_fma_kernel.inc"
#include "collimate/tensor/kernels/gemm_dot_kernel.inc"

namespace collimate::tensor::avx512 {

const GemmKernels kGemm = gemm_table({&pack_rows_rounded, &pack_columns_rounded, &block_amx_by_fma, kLeftStride},
                                     {&pack_rows_rounded, &pack_columns_rounded, &block_dot, kLeftStride});

}  // namespace collimate::tensor::avx512
