#include "collimate/tensor/kernels/attention_backward_kernel.inc"
#include "collimate/tensor/kernels/attention_forward_kernel.inc"

namespace collimate::tensor::avx512 {

const AttentionKernels kAttention = {&forward, &backward, &sinks_backward};

}  // namespace collimate::tensor::avx512
