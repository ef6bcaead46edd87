#include "collimate/tensor/kernels/pointwise_kernel.inc"
