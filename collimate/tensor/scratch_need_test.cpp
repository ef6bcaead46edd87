#include "collimate/tensor/scratch_need.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "collimate/tensor/allocator.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::tensor {
namespace {

// Returns the working memory that all threads hold now.
int64_t scratch_held() {
  int64_t bytes = 0;
  for (const MemoryUse& use : memory_report())
    if (use.purpose == "scratch") bytes += use.bytes;
  return bytes;
}

// Returns the working memory that new threads hold after `calls`, which get an Exec over them.
template <class Calls>
int64_t taken(int threads, const Calls& calls) {
  const int64_t before = scratch_held();
  int64_t after = 0;
  std::thread([&] {
    host::CorePool pool(threads);
    calls(Exec{&pool, &cpu_device()});
    after = scratch_held();
  }).join();
  return after - before;
}

// Calls linear() with so many rows, and with a bias, so that no sum goes straight into the result.
void multiply(const Exec& exec, const LinearPanels& panels, int64_t rows) {
  const std::vector<float> x(static_cast<size_t>(rows * panels.k), 0.5F), bias(static_cast<size_t>(panels.n), 1.0F);
  std::vector<float> y(static_cast<size_t>(rows * panels.n));
  linear(exec, x.data(), panels.k, rows, panels, y.data(), panels.n, {.bias = bias.data()});
}

int64_t needed(const LinearSize& size, int threads) {
  ScratchNeed need(threads);
  add_linear_scratch(size, need);
  return need.bytes();
}

// The rows that a thread packs grow with k: at 11,008, the width of an MLP, they alone are more than 5 MiB.
TEST(ScratchNeed, OfAProductIsThatOfItsKernels) {
  for (const int64_t k : {32, 384, 385, 11008}) {
    for (const int chunks : {1, 4}) {
      const LinearSize size{130, 256, k, chunks};
      const std::vector<float> w(static_cast<size_t>(size.n * k), 0.25F);
      LinearPanels panels;
      pack_linear(Exec{}, w.data(), size.n, k, ComputeType::kFloat32, chunks, panels);
      const int64_t alone = taken(1, [&](const Exec& exec) {
        for (const int64_t rows : {1, 16, 17, 126, 130}) multiply(exec, panels, rows);
      });
      EXPECT_EQ(alone, needed(size, 1)) << k << " in " << chunks;
      const int64_t together = taken(3, [&](const Exec& exec) {
        for (int64_t rows = 1; rows <= size.rows; rows += 3) multiply(exec, panels, rows);
      });
      EXPECT_LE(together, needed(size, 3)) << k << " in " << chunks;
      EXPECT_GT(together, needed(size, 1) / 2) << k << " in " << chunks;
    }
  }
  EXPECT_GT(needed({2048, 4096, 11008}, 1), 5 << 20);
}

// Several threads share rows that one of them packs: all rows of the call, while these are too few for a task each.
TEST(ScratchNeed, OfSharedRowsIsTheCallers) {
  const int64_t one = needed({2048, 4096, 11008}, 1);
  for (const int threads : {2, 16}) {
    EXPECT_GT(needed({2048, 4096, 11008}, threads), threads * one / 2);
    EXPECT_GE(needed({2048, 4096, 11008}, threads), needed({300, 4096, 11008}, threads));
    EXPECT_EQ(needed({1 << 20, 4096, 11008}, threads), needed({1 << 19, 4096, 11008}, threads));
  }
}

TEST(ScratchNeed, OfGradientsIsAtLeastThatOfTheirKernels) {
  for (const int64_t k : {96, 100, 2050}) {
    const LinearSize size{300, 500, k};
    const std::vector<float> w(static_cast<size_t>(size.n * k), 0.25F), dy(static_cast<size_t>(size.rows * size.n), 1),
        x(static_cast<size_t>(size.rows * k), 0.5F);
    std::vector<float> dx(static_cast<size_t>(size.rows * k)), dw(static_cast<size_t>(size.n * k));
    for (const int threads : {1, 3}) {
      ScratchNeed need(threads);
      add_linear_backward_scratch(size, need);
      const int64_t used = taken(threads, [&](const Exec& exec) {
        for (const int64_t rows : {20, 300}) {
          linear_grad_input(exec, ComputeType::kFloat32, dy.data(), size.n, rows, w.data(), size.n, k, dx.data(), k);
          linear_grad_weight(exec, ComputeType::kFloat32, dy.data(), size.n, x.data(), k, rows, size.n, k, dw.data());
        }
      });
      EXPECT_LE(used, need.bytes()) << k << " by " << threads;
      if (threads == 1) {  // of three, one may find nothing to do
        EXPECT_GT(used, need.bytes() / 2) << k;
      }
    }
  }
}

TEST(ScratchNeed, CountsTheMostOfEachSlotInEachThread) {
  const auto of = [](int64_t floats) { return allocated_bytes(floats * static_cast<int64_t>(sizeof(float))); };
  ScratchNeed need(3);
  EXPECT_EQ(need.bytes(), 0);
  need.in_caller(ScratchSlot::kCaller, 1000);
  need.in_each(ScratchSlot::kCaller, 300);
  need.in_each(ScratchSlot::kCaller, 200);
  EXPECT_EQ(need.bytes(), of(1000) + 2 * of(300));
  ScratchNeed alone(1);
  alone.in_caller(ScratchSlot::kCaller, 500);
  alone.in_each(ScratchSlot::kLeft, 70);
  need.in_each(alone);
  EXPECT_EQ(need.bytes(), of(1000) + 2 * of(500) + 3 * of(70));
}

}  // namespace
}  // namespace collimate::tensor
