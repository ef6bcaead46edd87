#pragma once

#include <string>

namespace collimate::host {

// CpuFeatures are the features that the processor and the operating system together let this process use.
struct CpuFeatures {
  bool avx2 = false;    // with FMA and F16C
  bool avx512 = false;  // F, BW, DQ and VL
  bool avx512_bf16 = false;
  bool amx_bf16 = false;  // the kernel was asked for permission to use the tiles and gave it
};

// Returns the features, which are detected once (cpuid, xgetbv, arch_prctl for AMX). Thread-safe.
const CpuFeatures& cpu_features();
// Returns how many cores this process may run on (its affinity mask), at least 1.
int core_count();
// Returns how many threads this process is to compute with: the first number of OMP_NUM_THREADS, as OpenMP reads it,
// when that is set and not empty, otherwise core_count(). Throws InputError naming the variable when it does not begin
// with a number from 1 to 1024.
int thread_count();
// Returns "Intel(R) Xeon(R) ..." or "unknown".
const std::string& cpu_model();

}  // namespace collimate::host
