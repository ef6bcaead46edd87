#include "collimate/tensor/ops/norm.h"

#include <algorithm>
#include <cmath>

#include "collimate/base/at.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kNormRows = 5;
constexpr float kEps = 1e-5F;

class Norm : public testing::TestWithParam<int64_t> {
 protected:
  int64_t width() const { return GetParam(); }
};

// Computes the norm in double; `centre` subtracts the mean (layer norm).
std::vector<double> reference(const Floats& x, const Floats& weight, const Floats& bias, int64_t width, bool centre) {
  std::vector<double> y(x.size());
  for (int64_t r = 0; r * width < static_cast<int64_t>(x.size()); ++r) {
    const float* row = x.data() + r * width;
    double mean = 0;
    for (int64_t i = 0; i < width && centre; ++i) mean += row[i] / static_cast<double>(width);
    double square = 0;
    for (int64_t i = 0; i < width; ++i) square += (row[i] - mean) * (row[i] - mean) / static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) {
      base::at(y, r * width + i) =
          (row[i] - mean) / std::sqrt(square + kEps) * base::at(weight, i) + (centre ? base::at(bias, i) : 0.0F);
    }
  }
  return y;
}

double weighted(const std::vector<double>& y, const Floats& dy) {
  double sum = 0;
  for (size_t i = 0; i < dy.size(); ++i) sum += y[i] * dy[i];
  return sum;
}

TEST_P(Norm, RmsForwardAndGradient) {
  Floats x = noise(kNormRows * width(), 1), weight = noise(width(), 2);
  const Floats dy = noise(kNormRows * width(), 3), none;
  Floats inv = constant(kNormRows, 0);
  const Floats y = same_everywhere([&](const Exec& exec) {
    Floats out = constant(kNormRows * width(), 0);
    rms_norm(exec, x.data(), kNormRows, width(), weight.data(), kEps, out.data(), inv.data());
    return out;
  });
  EXPECT_TRUE(close(y, reference(x, weight, none, width(), false), 1e-5));
  const Floats g = same_everywhere([&](const Exec& exec) {
    Floats out = constant((kNormRows + 1) * width(), 0.5F);
    rms_norm_backward(exec, dy.data(), x.data(), inv.data(), kNormRows, width(), weight.data(), out.data(), true,
                      out.data() + kNormRows * width());
    for (float& v : out) v -= 0.5F;
    return out;
  });
  const auto loss = [&] { return weighted(reference(x, weight, none, width(), false), dy); };
  const Floats dx(g.begin(), g.begin() + kNormRows * width()), dw(g.begin() + kNormRows * width(), g.end());
  EXPECT_TRUE(slopes_match(x, dx, 1e-2F, 2e-3, loss));
  EXPECT_TRUE(slopes_match(weight, dw, 1e-2F, 1e-4, loss));
}

TEST_P(Norm, LayerForwardAndGradient) {
  Floats x = noise(kNormRows * width(), 1), weight = noise(width(), 2), bias = noise(width(), 4);
  const Floats dy = noise(kNormRows * width(), 3);
  Floats mean = constant(kNormRows, 0), inv = constant(kNormRows, 0);
  const Floats y = same_everywhere([&](const Exec& exec) {
    Floats out = constant(kNormRows * width(), 0);
    layer_norm(exec, x.data(), kNormRows, width(), weight.data(), bias.data(), kEps, out.data(), mean.data(),
               inv.data());
    return out;
  });
  EXPECT_TRUE(close(y, reference(x, weight, bias, width(), true), 1e-5));
  Floats dw = constant(width(), 0), db = constant(width(), 0), dx = dy;
  layer_norm_backward(Exec{}, dx.data(), x.data(), mean.data(), inv.data(), kNormRows, width(), weight.data(),
                      dx.data(), false, dw.data(), db.data());
  const auto loss = [&] { return weighted(reference(x, weight, bias, width(), true), dy); };
  EXPECT_TRUE(slopes_match(x, dx, 3e-3F, 3e-3, loss));
  EXPECT_TRUE(slopes_match(weight, dw, 1e-2F, 1e-4, loss));
  EXPECT_TRUE(slopes_match(bias, db, 1e-2F, 1e-4, loss));
}

// An offset is added to each weight, and a bias may be missing.
TEST_P(Norm, LayerWithAnOffsetAndWithoutBiasesIsThatOfOtherWeights) {
  const Floats x = noise(kNormRows * width(), 1), dy = noise(kNormRows * width(), 3), none = constant(width(), 0);
  Floats weight = noise(width(), 2), sum = weight;
  for (float& w : sum) w += 0.75F;
  const auto run = [&](const Floats& weights, const float* bias, float offset) {
    Floats y = constant(kNormRows * width(), 0), mean = constant(kNormRows, 0), inv = mean, dx = y,
           dw = constant(width(), 0);
    layer_norm(Exec{}, x.data(), kNormRows, width(), weights.data(), bias, kEps, y.data(), mean.data(), inv.data(),
               offset);
    layer_norm_backward(Exec{}, dy.data(), x.data(), mean.data(), inv.data(), kNormRows, width(), weights.data(),
                        dx.data(), false, dw.data(), nullptr, offset);
    for (const Floats& more : {dx, dw}) y.insert(y.end(), more.begin(), more.end());
    return y;
  };
  const Floats wanted = run(sum, none.data(), 0);
  EXPECT_TRUE(same_bits(run(weight, nullptr, 0.75F), wanted));
  EXPECT_FALSE(same_bits(run(weight, nullptr, 0), wanted));
}

// Heads of rows with a stride are what they are as rows of their own, and what lies between them stays.
TEST_P(Norm, OfHeadsIsThatOfRows) {
  const HeadRows heads{kNormRows, 3 * width() + 5, 3, static_cast<int>(width())};
  const auto rows = [&](const Floats& strided) {
    Floats out;
    for (int64_t r = 0; r < kNormRows; ++r)
      out.insert(out.end(), strided.begin() + r * heads.stride, strided.begin() + r * heads.stride + 3 * width());
    return out;
  };
  const Floats x = noise(kNormRows * heads.stride, 1), weight = noise(width(), 2),
               dy = noise(kNormRows * heads.stride, 3);
  const Floats got = same_everywhere([&](const Exec& exec) {
    Floats y = constant(kNormRows * heads.stride, 7), inv = constant(3 * kNormRows, 0), dx = y,
           dw = constant(width(), 0);
    head_norm(exec, x.data(), heads, weight.data(), kEps, y.data(), inv.data());
    head_norm_backward(exec, dy.data(), x.data(), inv.data(), heads, weight.data(), dx.data(), dw.data());
    for (int64_t r = 0; r < kNormRows; ++r)
      for (int64_t i = 3 * width(); i < heads.stride; ++i)
        EXPECT_TRUE(base::at(y, r * heads.stride + i) == 7 && base::at(dx, r * heads.stride + i) == 7);
    Floats all = rows(y);
    for (const Floats& more : {rows(dx), dw, inv}) all.insert(all.end(), more.begin(), more.end());
    return all;
  });
  const Floats xr = rows(x), dyr = rows(dy);
  Floats y = xr, inv = constant(3 * kNormRows, 0), dx = xr, dw = constant(width(), 0);
  rms_norm(Exec{}, xr.data(), 3 * kNormRows, width(), weight.data(), kEps, y.data(), inv.data());
  rms_norm_backward(Exec{}, dyr.data(), xr.data(), inv.data(), 3 * kNormRows, width(), weight.data(), dx.data(), false,
                    dw.data());
  for (const Floats& more : {dx, dw, inv}) y.insert(y.end(), more.begin(), more.end());
  EXPECT_TRUE(same_bits(got, y));
}

TEST_P(Norm, ARowDoesNotSeeItsNeighbours) {
  const Floats x = noise(width(), 1), weight = noise(width(), 2);
  Floats alone = constant(width(), 0), many = nans(3 * width());
  rms_norm(Exec{}, x.data(), 1, width(), weight.data(), kEps, alone.data());
  std::copy(x.begin(), x.end(), many.begin() + width());
  rms_norm(Exec{}, many.data(), 3, width(), weight.data(), kEps, many.data());
  EXPECT_TRUE(same_bits(many.data() + width(), alone.data(), width()));
}

// The mean is a residue of rounding; as many rows as several threads share.
TEST_P(Norm, CancellingRowsHaveTheirBitsInAnyCompany) {
  const Floats x = cancelling(1, width(), 1, 64.0F), weight = noise(width(), 2), bias = noise(width(), 4, 1e-6F);
  const auto both = [&](const Exec& exec, const Floats& in) {
    const auto rows = static_cast<int64_t>(in.size()) / width();
    Floats out = constant(2 * rows * width(), 0);
    rms_norm(exec, in.data(), rows, width(), weight.data(), kEps, out.data());
    layer_norm(exec, in.data(), rows, width(), weight.data(), bias.data(), kEps, out.data() + rows * width());
    return out;
  };
  Floats alone;
  everywhere({1, 2}, [&](const Exec& exec, const std::string& where) {
    if (alone.empty()) alone = both(exec, x);
    for (const int64_t rows : {1, 3, 7000}) {
      for (const int64_t place : {int64_t{0}, rows / 2, rows - 1}) {
        Floats many = nans(rows * width());
        std::copy(x.begin(), x.end(), many.begin() + place * width());
        const Floats out = both(exec, many);
        EXPECT_TRUE(same_bits(out.data() + place * width(), alone.data(), width())) << where << ", rms, " << rows;
        EXPECT_TRUE(same_bits(out.data() + (rows + place) * width(), alone.data() + width(), width()))
            << where << ", layer, " << rows;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Widths, Norm, testing::Values(5, 16, 70, 129));

}  // namespace
}  // namespace collimate::tensor
