// These functions measure the peak that benches compare speeds with: the best of MKL's GEMM and ours over several sizes
// and of a loop in registers.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/ones.h>
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/peak/peak.h"
#include "bench/words.h"
#include "collimate/host/core_pool.h"
#include "collimate/host/cpu.h"
#include "collimate/tensor/aten_threads.h"
#include "collimate/tensor/kernels/isa.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::bench {

inline double best_rate(double flops, const std::function<void()>& body) {
  double best = seconds_of(body);
  for (int i = 0; i < 4; ++i) best = std::min(best, seconds_of(body));
  return flops / best / 1e9;
}

inline double mkl_peak(int threads, tensor::ComputeType compute) {
  at::set_num_threads(threads);
  double best = 0;
  for (const int64_t n : {512, 1024, 2048}) {
    const auto type = compute == tensor::ComputeType::kFloat32 ? at::kFloat : at::kBFloat16;
    const at::Tensor a = at::ones({n, n}, type), b = at::ones({n, n}, type);
    best = std::max(best, best_rate(2.0 * static_cast<double>(n * n * n), [&] { at::_ops::mm::call(a, b); }));
  }
  tensor::use_one_aten_thread();
  return best;
}

inline double own_peak(const tensor::Exec& exec, tensor::ComputeType compute) {
  double best = 0;
  for (const int64_t n : {512, 1024, 2048}) {
    const auto floats = static_cast<size_t>(n * n);
    const std::vector<float> w(floats, 1.0F), x(floats, 1.0F);
    std::vector<float> y(floats);
    tensor::LinearPanels panels;
    tensor::pack_linear(exec, w.data(), n, n, compute, 1, panels);
    best = std::max(best, best_rate(2.0 * static_cast<double>(n * n * n),
                                    [&] { tensor::linear(exec, x.data(), n, n, panels, y.data(), n); }));
  }
  return best;
}

// Returns the GFLOP/s of the loop in registers, with the instruction that computes products of this type on this
// machine: tiles, dot products of pairs of bf16, or FMA, which also does bf16 if there is neither.
inline double register_peak(const tensor::Exec& exec, tensor::ComputeType compute) {
  if (compute == tensor::ComputeType::kBFloat16Amx && tensor::instruction_set() == tensor::InstructionSet::kAmx)
    return tensor::tile_peak(exec);
  const double dots = compute == tensor::ComputeType::kBFloat16Dot ? tensor::dot_peak(exec) : 0;
  return dots > 0 ? dots : tensor::fma_peak(exec);
}

// Peaks are in GFLOP/s of all threads together.
struct Peaks {
  double mkl = 0, own = 0, loop = 0;
  double best() const { return std::max({mkl, own, loop}); }
};

inline Peaks peaks_of(const tensor::Exec& exec, tensor::ComputeType compute) {
  return {mkl_peak(exec.threads(), compute), own_peak(exec, compute), register_peak(exec, compute)};
}

inline void print_machine(const tensor::Exec& exec) {
  fmt::print("{}, isa {}, {} threads\n", host::cpu_model(), tensor::name_of(tensor::instruction_set()), exec.threads());
}

// A Machine is what a bench measures with: all cores, and memory that malloc keeps. The constructor throws InputError
// for words of the command line that are not known, and prints which machine this is.
struct Machine {
  explicit Machine(const Words& words) : pool((words.all_known(), host::core_count())) {
    keep_freed_memory();
    print_machine(exec);
  }

  host::CorePool pool;
  const tensor::Exec exec{&pool};
};

inline void print_peaks(tensor::ComputeType compute, const Peaks& peaks) {
  fmt::print("{}: GFLOP/s: MKL GEMM {:.1f}, our GEMM {:.1f}, register loop {:.1f}; peak {:.1f}\n",
             tensor::name_of(compute), peaks.mkl, peaks.own, peaks.loop, peaks.best());
}

}  // namespace collimate::bench
