#include "collimate/tensor/kernels/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {

namespace avx2 {
float fma_loop(int64_t steps);
}
namespace avx512 {
float fma_loop(int64_t steps);
}
namespace avx512_bf16 {
float dot_loop(int64_t steps);
}

namespace {

// GFLOP/s of a loop that does `flops` a step.
double best_rate(const Exec& exec, float (*loop)(int64_t), double flops) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kSteps = 200000;
  std::atomic<float> sink{0.0F};
  double best = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto begin = Clock::now();
    exec.parallel_for(exec.threads(), 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) sink = loop(kSteps);
    });
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, flops * kSteps * exec.threads() / seconds / 1e9);
  }
  return best;
}

}  // namespace

double fma_peak(const Exec& exec) {
  constexpr double kFlops = 12 * 16 * 2;  // 12 chains of 16 lanes
  return best_rate(exec, instruction_set() == InstructionSet::kAvx2 ? &avx2::fma_loop : &avx512::fma_loop, kFlops);
}

double dot_peak(const Exec& exec) {
  constexpr double kFlops = 12 * 16 * 4;  // two products a lane
  return instruction_set() < InstructionSet::kAvx512Bf16 ? 0 : best_rate(exec, &avx512_bf16::dot_loop, kFlops);
}

}  // namespace collimate::tensor
