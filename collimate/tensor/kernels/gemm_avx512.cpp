#include "collimate/tensor/kernels/gemm_bf16_kernel.inc"
#include "collimate/tensor/kernels/gemm_kernel.inc"

namespace collimate::tensor::avx512 {

const GemmKernels kGemm = {kTileRows,      &pack_rows,          &pack_columns,   kTileStride, &pack_right, &block_rows,
                           &block_columns, &pack_rows_bf16_fma, &block_bf16_fma, &finish,     kLeftStride};

}  // namespace collimate::tensor::avx512
