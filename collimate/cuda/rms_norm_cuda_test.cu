#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "collimate/cuda/rms_norm_cuda.h"

namespace collimate::cuda {
namespace {

// Runs the operation on `rows` rows of the host array and returns y.
std::vector<float> run(const std::vector<float>& x, const std::vector<float>& weight, int64_t rows) {
  const int64_t width = static_cast<int64_t>(weight.size());
  const size_t bytes = static_cast<size_t>(rows * width) * sizeof(float);
  float *dx = nullptr, *dw = nullptr, *dy = nullptr;
  EXPECT_EQ(cudaMalloc(&dx, bytes), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&dy, bytes), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&dw, weight.size() * sizeof(float)), cudaSuccess);
  cudaMemcpy(dx, x.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(dw, weight.data(), weight.size() * sizeof(float), cudaMemcpyHostToDevice);
  EXPECT_EQ(rms_norm(dx, dw, 1e-5F, rows, width, dy, nullptr, nullptr), cudaSuccess);
  std::vector<float> y(static_cast<size_t>(rows * width));
  EXPECT_EQ(cudaMemcpy(y.data(), dy, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  for (float* memory : {dx, dw, dy}) cudaFree(memory);
  return y;
}

TEST(RmsNormCuda, AgreesWithTheFormulaAndDependsOnTheRowOnly) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device in this machine";
  constexpr int64_t kRows = 7, kWidth = 1000;
  std::vector<float> x(kRows * kWidth), weight(kWidth);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37F * static_cast<float>(i)) * 3;
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = 1 + 0.01F * static_cast<float>(i % 10);
  const std::vector<float> y = run(x, weight, kRows);
  for (int64_t r = 0; r < kRows; ++r) {
    double sum = 0;
    for (int64_t i = 0; i < kWidth; ++i) sum += double{x[r * kWidth + i]} * x[r * kWidth + i];
    for (int64_t i = 0; i < kWidth; ++i) {
      const double expected = weight[i] * x[r * kWidth + i] / std::sqrt(sum / kWidth + 1e-5);
      EXPECT_NEAR(y[r * kWidth + i], expected, 1e-5 * (1 + std::fabs(expected)));
    }
    const std::vector<float> alone = run({x.begin() + r * kWidth, x.begin() + (r + 1) * kWidth}, weight, 1);
    EXPECT_EQ(std::memcmp(alone.data(), y.data() + r * kWidth, kWidth * sizeof(float)), 0) << "row " << r;
  }
}

}  // namespace
}  // namespace collimate::cuda
