#include "collimate/tensor/ops/linear.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "collimate/base/at.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

constexpr ComputeType kBf16Types[] = {ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot};
constexpr ComputeType kTrainedTypes[] = {ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot};
constexpr ComputeType kTypes[] = {ComputeType::kFloat32, ComputeType::kBFloat16Amx, ComputeType::kBFloat16Dot,
                                  ComputeType::kInt8};

struct Layer {
  int64_t n;
  int64_t k;
  ComputeType type = ComputeType::kFloat32;
  int chunks = 1;
};

Floats forward(const Exec& exec, const Layer& layer, const Floats& x, int64_t rows, const Floats& w,
               const LinearOptions& options = {}) {
  LinearPanels panels;
  pack_linear(exec, w.data(), layer.n, layer.k, layer.type, layer.chunks, panels);
  Floats y = constant(rows * layer.n, 0.5F);
  linear(exec, x.data(), layer.k, rows, panels, y.data(), layer.n, options);
  return y;
}

float bf16(float x) {
  uint32_t u = 0;
  std::memcpy(&u, &x, 4);
  u = (u + 0x7fffU + ((u >> 16) & 1U)) & 0xffff0000U;
  std::memcpy(&x, &u, 4);
  return x;
}

// The order that the header promises, written as scalar code.
float chain_fp32(const float* x, const float* w, int64_t begin, int64_t end) {
  float sum = 0;
  for (int64_t i = begin; i < end; ++i) sum = std::fmaf(x[i], w[i], sum);
  return sum;
}

float chain_amx(const float* x, const float* w, int64_t begin, int64_t end) {
  float sum = 0;
  for (int64_t at = begin; at < end; at += 32) {
    float even = 0;
    float odd = 0;
    for (int64_t i = at; i < std::min(end, at + 32); ++i) {
      float& part = (i - at) % 2 == 0 ? even : odd;
      part = std::fmaf(bf16(x[i]), bf16(w[i]), part);
    }
    sum = sum + (even + odd);
  }
  return sum;
}

float chain_dot(const float* x, const float* w, int64_t begin, int64_t end) {
  float sum = 0;
  for (int64_t i = begin; i < end; i += 2) {
    if (i + 1 < end) sum = std::fmaf(bf16(x[i + 1]), bf16(w[i + 1]), sum);
    sum = std::fmaf(bf16(x[i]), bf16(w[i]), sum);
  }
  return sum;
}

float chain(ComputeType type, const float* x, const float* w, int64_t begin, int64_t end) {
  if (type == ComputeType::kFloat32) return chain_fp32(x, w, begin, end);
  return (type == ComputeType::kBFloat16Amx ? chain_amx : chain_dot)(x, w, begin, end);
}

struct Int8Row {
  float scale;
  Floats q;
};
Int8Row int8_row(const float* w, int64_t k) {
  Int8Row row{0, Floats(static_cast<size_t>(k))};
  for (int64_t i = 0; i < k; ++i) row.scale = std::max(row.scale, std::fabs(w[i]));
  row.scale /= 127;
  for (int64_t i = 0; i < k; ++i) base::at(row.q, i) = std::nearbyint(w[i] / row.scale);
  return row;
}

float promised(const Layer& layer, const float* x, const float* w) {
  if (layer.type == ComputeType::kInt8) {
    const Int8Row row = int8_row(w, layer.k);
    return promised({layer.n, layer.k, ComputeType::kFloat32, layer.chunks}, x, row.q.data()) * row.scale;
  }
  std::vector<float> part;
  for (int c = 0; c < layer.chunks; ++c) {
    const int64_t begin = layer.k * c / layer.chunks;
    const int64_t end = layer.k * (c + 1) / layer.chunks;
    part.push_back(chain(layer.type, x, w, begin, end));
  }
  for (size_t step = 1; step < part.size(); step *= 2) {
    for (size_t c = 0; c + step < part.size(); c += 2 * step) part[c] += part[c + step];
  }
  return part[0];
}

class LinearOrder : public testing::TestWithParam<Layer> {};

TEST_P(LinearOrder, IsTheOnePromisedForAnyRowsThreadsAndInstructionSet) {
  const Layer layer = GetParam();
  const Floats w = noise(layer.n * layer.k, 1);
  for (const int64_t rows : {1, 2, 3, 5, 7, 8, 14, 15, 16, 17, 31, 33, 47, 100}) {
    const Floats x = noise(rows * layer.k, 2);
    const Floats y = same_everywhere([&](const Exec& exec) { return forward(exec, layer, x, rows, w); });
    for (int64_t r = 0; r<rows; r += rows> 20 ? 7 : 1) {
      for (int64_t c = 0; c < layer.n; ++c) {
        const float want = promised(layer, x.data() + r * layer.k, w.data() + c * layer.k);
        ASSERT_EQ(base::at(y, r * layer.n + c), want) << rows << " rows, row " << r << " output " << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LinearOrder,
    testing::Values(Layer{40, 70}, Layer{1, 5}, Layer{96, 801}, Layer{33, 100, ComputeType::kFloat32, 4},
                    Layer{65, 1003, ComputeType::kFloat32, 8}, Layer{40, 64, ComputeType::kBFloat16Amx},
                    Layer{33, 70, ComputeType::kBFloat16Amx}, Layer{64, 801, ComputeType::kBFloat16Amx},
                    Layer{40, 150, ComputeType::kBFloat16Amx, 2}, Layer{40, 64, ComputeType::kBFloat16Dot},
                    Layer{33, 71, ComputeType::kBFloat16Dot}, Layer{300, 801, ComputeType::kBFloat16Dot},
                    Layer{40, 150, ComputeType::kBFloat16Dot, 2}, Layer{300, 36, ComputeType::kFloat32},
                    Layer{40, 70, ComputeType::kInt8}, Layer{1, 5, ComputeType::kInt8},
                    Layer{96, 801, ComputeType::kInt8}, Layer{65, 1003, ComputeType::kInt8, 8},
                    Layer{300, 70, ComputeType::kInt8}));

TEST(Linear, Int8HoldsAByteAWeightAndAScaleARow) {
  EXPECT_EQ(packed_bytes({}, 64, 256, ComputeType::kInt8, 1), 64 * 256 + 64 * 4);
}

TEST(Linear, Int8ErrorIsThatOfItsRoundings) {
  const int64_t n = 37, k = 300;
  Floats w = noise(n * k, 11);
  std::fill_n(w.begin(), k, 0.0F);
  double error = 0, total = 0;
  for (int64_t r = 0; r < n; ++r) {
    const Int8Row row = int8_row(w.data() + r * k, k);
    for (int64_t i = 0; i < k; ++i) {
      const double x = base::at(w, r * k + i);
      const double left = r == 0 ? 0 : x - double{row.scale} * double{base::at(row.q, i)};
      error += left * left, total += x * x;
    }
  }
  const RoundingError got = int8_error({}, w.data(), n, k);
  EXPECT_NEAR(got.error, error, 1e-9 * error);
  EXPECT_NEAR(got.total, total, 1e-9 * total);
  EXPECT_LT(std::sqrt(got.error / got.total), 0.01);
}

TEST(Linear, Int8KeepsARowOfZerosAndSaysWhereAWeightIsNotFinite) {
  const Layer layer{33, 48, ComputeType::kInt8};
  Floats w = noise(layer.n * layer.k, 12);
  std::fill_n(w.begin() + 5 * layer.k, layer.k, 0.0F);
  std::fill_n(w.begin() + 9 * layer.k, layer.k, 2e-43F);  // this is too small for a scale
  base::at(w, 7 * layer.k + 3) = std::numeric_limits<float>::infinity();
  base::at(w, 32 * layer.k) = std::nanf("");
  const Floats y = forward({}, layer, noise(layer.k, 13), 1, w);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i == 7 || i == 32) << i;
  EXPECT_EQ(y[5], 0.0F);
  EXPECT_EQ(y[9], 0.0F);
}

// Cut in two, whose sums are of opposite sign, the same products leave nothing: the outputs below are their order.
TEST(Linear, CancellingRowsShowTheOrder) {
  for (const ComputeType type : kTypes) {
    const Layer layer{160, 1024, type};
    const Floats x = repeating(1, layer.k, 4), w = cancelling(layer.n, layer.k, 3);
    const Floats whole = forward({}, layer, x, 1, w), cut = forward({}, {layer.n, layer.k, type, 2}, x, 1, w);
    EXPECT_EQ(std::count(cut.begin(), cut.end(), 0.0F), layer.n) << name_of(type);
    EXPECT_LT(std::count(whole.begin(), whole.end(), 0.0F), layer.n / 4) << name_of(type);
  }
}

TEST(Linear, CancellingRowsHaveTheirBitsInAnyCompany) {
  for (const ComputeType type : kTypes) {
    const Layer layer{160, 1024, type};
    const Floats one = repeating(1, layer.k, 4), w = cancelling(layer.n, layer.k, 3);
    Floats alone;
    everywhere({1, 2}, [&](const Exec& exec, const std::string& where) {
      if (alone.empty()) alone = forward(exec, layer, one, 1, w);
      for (const int64_t rows : {1, 2, 9, 16, 17, 40, 200}) {
        for (const int64_t place : {int64_t{0}, rows / 2, rows - 1}) {
          Floats x = nans(rows * layer.k);
          std::copy(one.begin(), one.end(), x.begin() + place * layer.k);
          const Floats y = forward(exec, layer, x, rows, w);
          EXPECT_TRUE(same_bits(y.data() + place * layer.n, alone.data(), layer.n))
              << name_of(type) << ", " << where << ", " << rows << " rows, at " << place;
        }
      }
    });
  }
}

TEST(Linear, Bf16FlushesDenormals) {
  for (const ComputeType type : kBf16Types) {
    const Layer layer{16, 32, type};
    const Floats w = constant(layer.n * layer.k, 1e-25F), x = noise(32, 1, 1e-18F);
    const Floats y = same_everywhere([&](const Exec& exec) { return forward(exec, layer, x, 1, w); });
    for (const float v : y) EXPECT_EQ(v, 0.0F);
    EXPECT_NE(chain(type, x.data(), w.data(), 0, 32), 0.0F) << "the case would show nothing";
  }
}

TEST(Linear, Bf16KeepsNaN) {
  Floats x = noise(32, 1);
  uint32_t payload = 0x7fffffffU;
  std::memcpy(&x[3], &payload, 4);
  for (const ComputeType type : kBf16Types)
    for (const float v : forward(Exec{}, {16, 32, type}, x, 1, noise(16 * 32, 2))) EXPECT_TRUE(std::isnan(v));
}

TEST(Linear, BiasStridesAndAccumulate) {
  const int64_t n = 21, k = 19, rows = 4;
  const Floats w = noise(n * k, 1), x = noise(rows * 30, 2), bias = noise(n, 3);
  LinearPanels panels;
  pack_linear(Exec{}, w.data(), n, k, ComputeType::kFloat32, 1, panels);
  Floats y = constant(rows * 25, 7.0F);
  linear(Exec{}, x.data(), 30, rows, panels, y.data(), 25, {bias.data(), true});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < 25; ++c) {
      double want = 7.0;
      if (c < n) {
        want += base::at(bias, c);
        for (int64_t i = 0; i < k; ++i) want += static_cast<double>(x[r * 30 + i]) * w[c * k + i];
      }
      EXPECT_NEAR(base::at(y, r * 25 + c), want, 1e-5) << r << " " << c;
    }
  }
}

TEST(Linear, MatricesSideBySideEqualEachAlone) {
  const int64_t k = 50;
  const Floats a = noise(20 * k, 1), b = noise(45 * k, 2), x = noise(3 * k, 3);
  LinearPanels both;
  both.reset({}, 65, k, ComputeType::kBFloat16Amx, 1);
  pack_linear_rows(Exec{}, b.data(), 20, 45, both);
  pack_linear_rows(Exec{}, a.data(), 0, 20, both);
  Floats y = constant(3 * 65, 0.0F);
  linear(Exec{}, x.data(), k, 3, both, y.data(), 65);
  const Floats ya = forward(Exec{}, {20, k, ComputeType::kBFloat16Amx}, x, 3, a);
  const Floats yb = forward(Exec{}, {45, k, ComputeType::kBFloat16Amx}, x, 3, b);
  for (int64_t r = 0; r < 3; ++r) {
    EXPECT_TRUE(same_bits(y.data() + r * 65, ya.data() + r * 20, 20));
    EXPECT_TRUE(same_bits(y.data() + r * 65 + 20, yb.data() + r * 45, 45));
  }
}

struct Gradients {
  Floats dx, dw;  // dw with db behind it; both added to 0.25
};

Gradients gradients(const Layer& layer, int64_t rows, const Floats& w, const Floats& x, const Floats& dy) {
  const auto [n, k, type, chunks] = layer;
  Gradients g;
  g.dx = same_everywhere([&](const Exec& exec) {
    Floats out = constant(rows * k, 0.25F);
    linear_grad_input(exec, type, dy.data(), n, rows, w.data(), n, k, out.data(), k, true);
    return out;
  });
  g.dw = same_everywhere([&](const Exec& exec) {
    Floats out = constant(n * k + n, 0.25F);
    linear_grad_weight(exec, type, dy.data(), n, x.data(), k, rows, n, k, out.data(), out.data() + n * k);
    return out;
  });
  return g;
}

Floats rounded(Floats values) {
  for (float& v : values) v = bf16(v);
  return values;
}

// Whole panels and not, several blocks of depth, and one depth of more than one slab.
TEST(Linear, GradientsAgreeWithDoubleAndDoNotDependOnThreads) {
  struct Size {
    int64_t rows, n, k;
  };
  for (const auto& [rows, n, k] : std::vector<Size>{
           {1, 37, 530}, {3, 37, 530}, {40, 37, 530}, {130, 37, 530}, {130, 450, 96}, {900, 37, 64}, {2, 17000, 64}}) {
    for (const ComputeType type : kTrainedTypes) {
      Floats w = noise(n * k, 1), x = noise(rows * k, 2), dy = noise(rows * n, 3);
      const Gradients got = gradients({n, k, type}, rows, w, x, dy);
      std::vector<double> want_dx(got.dx.size(), 0.25), want_dw(got.dw.size(), 0.25);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < n; ++c) base::at(want_dw, n * k + c) += base::at(dy, r * n + c);
      if (type != ComputeType::kFloat32) w = rounded(w), x = rounded(x), dy = rounded(dy);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < n; ++c) {
          const double d = base::at(dy, r * n + c);
          for (int64_t i = 0; i < k; ++i) {
            base::at(want_dx, r * k + i) += d * base::at(w, c * k + i);
            base::at(want_dw, c * k + i) += d * base::at(x, r * k + i);
          }
        }
      }
      const auto tolerance = [](int64_t depth) { return 1e-5 * std::max(1.0, static_cast<double>(depth) / 100); };
      EXPECT_TRUE(close(got.dx, want_dx, tolerance(n))) << rows << " " << n << " " << k << " " << name_of(type);
      EXPECT_TRUE(close(got.dw, want_dw, tolerance(rows))) << rows << " " << n << " " << k << " " << name_of(type);
    }
  }
}

// An odd number of outputs and of rows, each more than one step of depth.
TEST(Linear, Bf16GradientsAddInTheOrderPromised) {
  const int64_t rows = 71, n = 37, k = 70;
  const Floats w = noise(n * k, 1), x = noise(rows * k, 2), dy = noise(rows * n, 3);
  for (const ComputeType type : kBf16Types) {
    Floats dx(static_cast<size_t>(rows * k)), dw(static_cast<size_t>(n * k));
    linear_grad_input({}, type, dy.data(), n, rows, w.data(), n, k, dx.data(), k);
    linear_grad_weight({}, type, dy.data(), n, x.data(), k, rows, n, k, dw.data());
    const auto column = [](const Floats& m, int64_t height, int64_t width, int64_t c) {
      Floats out;
      for (int64_t r = 0; r < height; ++r) out.push_back(base::at(m, r * width + c));
      return out;
    };
    for (int64_t i = 0; i < k; ++i) {
      const Floats w_i = column(w, n, k, i), x_i = column(x, rows, k, i);
      for (int64_t r = 0; r < rows; ++r)
        ASSERT_EQ(base::at(dx, r * k + i), chain(type, dy.data() + r * n, w_i.data(), 0, n)) << r << " " << i;
      for (int64_t c = 0; c < n; ++c)
        ASSERT_EQ(base::at(dw, c * k + i), chain(type, column(dy, rows, n, c).data(), x_i.data(), 0, rows))
            << c << " " << i;
    }
  }
}

TEST(Linear, RejectsAnotherNumberOfChunks) {
  LinearPanels panels;
  EXPECT_ANY_THROW(panels.reset({}, 4, 4, ComputeType::kFloat32, 3));
  EXPECT_ANY_THROW(panels.reset({}, 4, 3, ComputeType::kFloat32, 4)) << "a chunk would be empty";
  EXPECT_NO_THROW(panels.reset({}, 4, 4, ComputeType::kFloat32, 4));
}

}  // namespace
}  // namespace collimate::tensor
