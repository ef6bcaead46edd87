#include "collimate/tensor/kernels/peak_kernel.inc"
