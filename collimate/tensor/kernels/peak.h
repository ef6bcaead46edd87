#pragma once

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// fp32 GFLOP/s of independent FMA chains in registers, best of several runs, all threads together: the yardstick of the
// kernels' speed on this machine, with instruction_set()'s vectors. About 50 ms.
double fma_peak(const Exec& exec);
// The same of vdpbf16ps; 0 where instruction_set() has none.
double dot_peak(const Exec& exec);

}  // namespace collimate::tensor
