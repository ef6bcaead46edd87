#include "collimate/tensor/kernels/softmax_kernel.inc"
