#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// fp32 GFLOP/s of independent FMA chains in registers, best of several runs, all threads together: the yardstick of the
// kernels' speed on this machine, with instruction_set()'s vectors. About 50 ms.
double fma_peak(const Exec& exec);
// Measures vdpbf16ps; 0 where instruction_set() has none.
double dot_peak(const Exec& exec);
// Measures tdpbf16ps on tiles in registers; 0 where instruction_set() has none.
double tile_peak(const Exec& exec);

// GB/s of reading `bytes` bytes at `data` again and again, each thread its own part, best of several runs: the
// yardstick of what streams weights from the level of the caches, or the memory, that holds so many. `data` is 64-byte
// aligned; what is behind its last whole 64 bytes is left out, and there is at least one. About 50 ms, longer above 100
// MB.
double read_peak(const Exec& exec, const void* data, int64_t bytes);

}  // namespace collimate::tensor
