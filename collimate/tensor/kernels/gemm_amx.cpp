#include "collimate/tensor/kernels/gemm_amx_kernel.inc"
#include "collimate/tensor/kernels/gemm_kernel.inc"

namespace collimate::tensor::amx {

const GemmKernels kGemm = {kTileRows,       &pack_rows,  &pack_columns,  kTileStride,
                           &pack_right,     &block_rows, &block_columns, &pack_rows_bf16_amx,
                           &block_bf16_amx, &finish,     kLeftStride / 2};

}  // namespace collimate::tensor::amx
