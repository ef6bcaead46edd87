#include "bench/peak/peak_kernel.inc"
