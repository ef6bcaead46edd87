#include <cmath>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/embedding.h"
#include "collimate/tensor/ops/rope.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

TEST(Activation, AddAndAddBias) {
  const Floats x = noise(40, 1);
  const Floats y = same_everywhere([&](const Exec& exec) {
    Floats out = constant(40, 1.0F);
    add(exec, x.data(), 40, out.data());
    add_bias(exec, x.data(), 2, 17, out.data(), 20);
    return out;
  });
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(y[i], i % 20 < 17 ? (1.0F + x[i]) + x[i % 20] : 1.0F + x[i]);
}

TEST(Activation, SigmoidAndItsGradient) {
  for (const float magnitude : {0.01F, 1.0F, 6.0F, 90.0F}) {
    const Floats x = noise(133, 1, magnitude), dy = noise(133, 2);
    const Floats got = same_everywhere([&](const Exec& exec) {
      Floats out = x, dx = dy;
      sigmoid(exec, out.data(), 133, out.data());
      sigmoid_backward(exec, dx.data(), x.data(), 133, dx.data());
      out.insert(out.end(), dx.begin(), dx.end());
      return out;
    });
    for (size_t i = 0; i < 133; ++i) {
      const double s = 1 / (1 + std::exp(-static_cast<double>(x[i])));
      EXPECT_NEAR(got[i], s, 2e-7) << x[i];
      EXPECT_NEAR(got[133 + i], dy[i] * s * (1 - s), 2e-7) << x[i];
    }
  }
  Floats y = {std::nanf("")};
  sigmoid({}, y.data(), 1, y.data());
  EXPECT_TRUE(std::isnan(y[0]));
}

struct Table {
  Floats cos, sin;
  RopeTable view;
  Table(int64_t positions, int rotary) {
    for (int64_t p = 0; p < positions; ++p) {
      for (int i = 0; i < rotary / 2; ++i) {
        const double angle = static_cast<double>(p) * std::pow(10000.0, -2.0 * i / rotary);
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    view = {cos.data(), sin.data(), positions, rotary};
  }
};

TEST(Rope, TurnsHalvesAndBack) {
  const int heads = 3, dim = 20, rotary = 12;
  const int64_t stride = heads * dim + 2;
  const Table table(9, rotary);
  const std::vector<int32_t> positions = {8, 0, 3};
  const Floats x = noise(3 * stride, 1);
  const Floats y = same_everywhere([&](const Exec& exec) {
    Floats out = x;
    rope(exec, out.data(), stride, 3, heads, dim, positions.data(), table.view);
    return out;
  });
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < stride; ++c) {
      const int64_t i = c % dim, half = rotary / 2;
      double want = x[r * stride + c];
      if (c < heads * dim && i < rotary) {
        const double angle = positions[r] * std::pow(10000.0, -2.0 * (i % half) / rotary);
        const double other = x[r * stride + (i < half ? c + half : c - half)];
        want = want * std::cos(angle) + (i < half ? -other : other) * std::sin(angle);
      }
      EXPECT_NEAR(y[r * stride + c], want, 1e-6);
    }
  }
  Floats back = same_everywhere([&](const Exec& exec) {
    Floats out = y;
    rope_backward(exec, out.data(), stride, 3, heads, dim, positions.data(), table.view);
    return out;
  });
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 1e-6);
  const std::vector<int32_t> beyond = {0, 9, 0};
  EXPECT_THROW(rope(Exec{}, back.data(), stride, 3, heads, dim, beyond.data(), table.view), base::InputError);
}

TEST(Embedding, GathersAndScattersInOrder) {
  const int64_t entries = 7, width = 70;
  const Floats table = noise(entries * width, 1), dout = noise(5 * width, 2);
  const std::vector<int32_t> ids = {6, 0, 3, 3, 6};
  Floats out = constant(5 * width, 0);
  embedding(Exec{}, table.data(), entries, width, ids.data(), 5, out.data());
  embedding(Exec{}, table.data(), entries, width, ids.data(), 5, out.data(), true);
  const Floats d = same_everywhere([&](const Exec& exec) {
    Floats g = constant(entries * width, 0.5F);
    embedding_backward(exec, dout.data(), ids.data(), 5, entries, width, g.data());
    return g;
  });
  for (int64_t c = 0; c < width; ++c) {
    for (int64_t r = 0; r < 5; ++r) EXPECT_EQ(out[r * width + c], 2 * table[ids[r] * width + c]);
    EXPECT_EQ(d[3 * width + c], (0.5F + dout[2 * width + c]) + dout[3 * width + c]);
    EXPECT_EQ(d[1 * width + c], 0.5F);
  }
  const std::vector<int32_t> bad = {7};
  EXPECT_THROW(embedding(Exec{}, table.data(), entries, width, bad.data(), 1, out.data()), base::InputError);
}

}  // namespace
}  // namespace collimate::tensor
