#include "bench/peak/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "collimate/base/error.h"
#include "collimate/tensor/kernels/isa.h"

namespace collimate::tensor {

namespace avx2 {
float fma_loop(int64_t steps);
int64_t read_loop(const void* data, int64_t lines, int64_t passes);
}  // namespace avx2
namespace avx512 {
float fma_loop(int64_t steps);
int64_t read_loop(const void* data, int64_t lines, int64_t passes);
}  // namespace avx512
namespace avx512_bf16 {
float dot_loop(int64_t steps);
}
namespace amx {
float tile_loop(int64_t steps);
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Returns the GFLOP/s of all threads with a loop that does `flops` in each step, as the best of several runs.
double best_rate(const Exec& exec, float (*loop)(int64_t), double flops) {
  constexpr int64_t kSteps = 200000;
  std::atomic<float> sink{0.0F};
  double best = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const auto begin = Clock::now();
    exec.parallel_for(exec.threads(), 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) sink = loop(kSteps);
    });
    best = std::max(best, flops * kSteps * exec.threads() / seconds_since(begin) / 1e9);
  }
  return best;
}

}  // namespace

double fma_peak(const Exec& exec) {
  constexpr double kFlops = 12 * 16 * 2;  // 12 chains of 16 lanes
  return best_rate(exec, instruction_set() == InstructionSet::kAvx2 ? &avx2::fma_loop : &avx512::fma_loop, kFlops);
}

double dot_peak(const Exec& exec) {
  constexpr double kFlops = 12 * 16 * 4;  // 12 chains of 16 lanes, two products in each
  return instruction_set() < InstructionSet::kAvx512Bf16 ? 0 : best_rate(exec, &avx512_bf16::dot_loop, kFlops);
}

double tile_peak(const Exec& exec) {
  constexpr double kFlops = 4 * 16 * 16 * 32 * 2;  // 4 tiles of 16 x 16 sums, 32 deep
  return instruction_set() < InstructionSet::kAmx ? 0 : best_rate(exec, &amx::tile_loop, kFlops);
}

double read_peak(const Exec& exec, const void* data, int64_t bytes) {
  constexpr int64_t kLine = 64;
  constexpr double kLeastSeconds = 4e-3;
  const int64_t lines = bytes / kLine;
  COLLIMATE_CHECK(lines > 0, "{} bytes", bytes);
  const auto loop = instruction_set() == InstructionSet::kAvx2 ? &avx2::read_loop : &avx512::read_loop;
  std::atomic<int64_t> sink{0};
  const auto seconds_of = [&](int64_t passes) {
    const auto begin = Clock::now();
    exec.parallel_for(exec.threads(), 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const int64_t first = lines * i / exec.threads(), end = lines * (i + 1) / exec.threads();
        sink ^= loop(static_cast<const char*>(data) + first * kLine, end - first, passes);
      }
    });
    return seconds_since(begin);
  };
  int64_t passes = 1;
  while (seconds_of(passes) < kLeastSeconds) passes *= 2;
  double least = seconds_of(passes);
  for (int repeat = 0; repeat < 4; ++repeat) least = std::min(least, seconds_of(passes));
  return static_cast<double>(lines * kLine * passes) / least / 1e9;
}

}  // namespace collimate::tensor
