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

double fma_peak(const Exec& exec) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kSteps = 200000;
  constexpr double kFlops = 12.0 * 16.0 * 2.0 * kSteps;  // 12 chains of 16 lanes
  const auto loop = instruction_set() == InstructionSet::kAvx2 ? &avx2::fma_loop : &avx512::fma_loop;
  std::atomic<float> sink{0.0F};
  double best = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto begin = Clock::now();
    exec.parallel_for(exec.threads(), 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) sink = loop(kSteps);
    });
    best = std::max(best, kFlops * exec.threads() / std::chrono::duration<double>(Clock::now() - begin).count() / 1e9);
  }
  return best;
}

}  // namespace collimate::tensor
