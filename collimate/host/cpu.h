#pragma once

#include <string>

namespace collimate::host {

// The processor and the operating system together let this process use these.
struct CpuFeatures {
  bool avx2 = false;    // with FMA and F16C
  bool avx512 = false;  // F, BW, DQ and VL
  bool avx512_bf16 = false;
  bool amx_bf16 = false;  // permission to use the tiles was asked of the kernel and given
};

// Found once (cpuid, xgetbv, arch_prctl for AMX). Thread-safe.
const CpuFeatures& cpu_features();
// Cores this process may run on (its affinity mask), at least 1.
int core_count();
// Threads that this process is to compute with: the first number of OMP_NUM_THREADS, as OpenMP reads it, where that is
// set and not empty, else core_count(). InputError naming the variable where it begins with none from 1 to 1024.
int thread_count();
// "Intel(R) Xeon(R) ..." or "unknown".
const std::string& cpu_model();

}  // namespace collimate::host
