#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "collimate/cuda/rms_norm_cuda.h"

namespace collimate::cuda {
namespace {

constexpr float kEps = 1e-5F;

// Floats on the device; `offset` of them lie ahead of data(), so that an offset of 1 makes data() unaligned.
class DeviceFloats {
 public:
  explicit DeviceFloats(const std::vector<float>& values, size_t offset = 0) : offset_(offset), size_(values.size()) {
    EXPECT_EQ(cudaMalloc(&memory_, (size_ + offset_) * sizeof(float)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data(), values.data(), size_ * sizeof(float), cudaMemcpyHostToDevice), cudaSuccess);
  }
  DeviceFloats(const DeviceFloats&) = delete;
  DeviceFloats& operator=(const DeviceFloats&) = delete;
  ~DeviceFloats() { cudaFree(memory_); }

  float* data() { return memory_ + offset_; }
  std::vector<float> read() {
    std::vector<float> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), data(), size_ * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  float* memory_ = nullptr;
  size_t offset_, size_;
};

struct Result {
  std::vector<float> y, inv;
};

// Both outputs hold NaN before, so that an element that is not written shows.
Result run(const std::vector<float>& x, const std::vector<float>& weight, int64_t rows, size_t offset = 0) {
  const std::vector<float> unwritten(x.size(), NAN);
  DeviceFloats dx(x, offset), dw(weight, offset), dy(unwritten, offset), dinv(std::vector<float>(size_t(rows), NAN));
  const auto width = static_cast<int64_t>(weight.size());
  EXPECT_EQ(rms_norm(dx.data(), dw.data(), kEps, rows, width, dy.data(), dinv.data(), nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return {dy.read(), dinv.read()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Widths: one element, less than four, no multiple of four, each number of held steps, and more than are held.
class RmsNormCuda : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device in this machine";
    std::mt19937 random(std::random_device{}());
    std::normal_distribution<float> normal(0.1F, 3);
    x_.resize(size_t(kRows * width()));
    weight_.resize(size_t(width()));
    for (float& value : x_) value = normal(random);
    for (float& value : weight_) value = normal(random);
  }

  static constexpr int64_t kRows = 7;
  int64_t width() const { return GetParam(); }
  std::vector<float> row(int64_t r) const { return {x_.begin() + r * width(), x_.begin() + (r + 1) * width()}; }

  std::vector<float> x_, weight_;
};

TEST_P(RmsNormCuda, AgreesWithTheFormula) {
  const Result result = run(x_, weight_, kRows);
  for (int64_t r = 0; r < kRows; ++r) {
    double sum = 0;
    for (const float value : row(r)) sum += double{value} * value;
    const double inv = 1 / std::sqrt(sum / static_cast<double>(width()) + kEps);
    EXPECT_NEAR(result.inv[size_t(r)], inv, 1e-6 * inv);
    for (int64_t i = 0; i < width(); ++i) {
      const double expected = weight_[size_t(i)] * (x_[size_t(r * width() + i)] * inv);
      ASSERT_NEAR(result.y[size_t(r * width() + i)], expected, 1e-6 * std::fabs(expected))
          << "row " << r << " at " << i;
    }
  }
}

TEST_P(RmsNormCuda, ARowsBitsDependOnItsValuesAlone) {
  const Result together = run(x_, weight_, kRows);
  const Result unaligned = run(x_, weight_, kRows, 1);
  EXPECT_TRUE(same_bits(unaligned.y, together.y));
  EXPECT_TRUE(same_bits(unaligned.inv, together.inv));
  for (int64_t r = 0; r < kRows; ++r) {
    const Result alone = run(row(r), weight_, 1);
    EXPECT_EQ(std::memcmp(alone.y.data(), together.y.data() + r * width(), size_t(width()) * sizeof(float)), 0)
        << "row " << r;
  }
}

TEST_P(RmsNormCuda, WorksInPlaceAndWithoutTheFactor) {
  DeviceFloats x(x_), weight(weight_);
  EXPECT_EQ(rms_norm(x.data(), weight.data(), kEps, kRows, width(), x.data(), nullptr, nullptr), cudaSuccess);
  EXPECT_TRUE(same_bits(x.read(), run(x_, weight_, kRows).y));
}

INSTANTIATE_TEST_SUITE_P(Widths, RmsNormCuda,
                         testing::Values(1, 3, 999, 1000, 1024, 2048, 3000, 4096, 8192, 8193, 20000));

TEST(RmsNormCudaErrors, NoRowsIsNoLaunch) {
  EXPECT_EQ(rms_norm(nullptr, nullptr, kEps, 0, 8, nullptr, nullptr, nullptr), cudaSuccess);
}

}  // namespace
}  // namespace collimate::cuda
