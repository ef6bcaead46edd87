#pragma once

#include <cstdint>

#include "collimate/tensor/exec.h"

namespace collimate::tensor {

// Returns the fp32 GFLOP/s of independent FMA chains in registers, with instruction_set()'s vectors, of all threads
// together, as the best of several runs: the yardstick for the kernels' speed on this machine. Takes about 50 ms.
double fma_peak(const Exec& exec);
// Returns the same for vdpbf16ps, 0 if instruction_set() lacks it.
double dot_peak(const Exec& exec);
// Returns the same for tdpbf16ps on tiles in registers, 0 if instruction_set() lacks it.
double tile_peak(const Exec& exec);

// Returns the GB/s of reading `bytes` bytes at `data` again and again, each thread its own part, as the best of several
// runs: the yardstick for kernels that stream weights from the cache level, or the memory, that holds so many bytes.
// `data` is 64-byte aligned and has at least 64 bytes; bytes behind the last whole 64 are left out. Takes about 50 ms,
// longer above 100 MB.
double read_peak(const Exec& exec, const void* data, int64_t bytes);

}  // namespace collimate::tensor
