#include "collimate/tensor/kernels/norm_kernel.inc"
