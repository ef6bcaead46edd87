// The gated activation of gpt-oss and its gradients against their composition in ATen, in double.
#include <cmath>

#include "collimate/tensor/autograd.h"
#include "collimate/tensor/ops/activation.h"
#include "tests/support/tensor/ops/aten_doubles.h"

namespace collimate::tensor {
namespace {

constexpr int64_t kSwishRows = 37, kSwishWidth = 45;

at::Tensor composition(const SwishBounds& how, const at::Tensor& gate_up) {
  const std::vector<at::Tensor> halves = gate_up.chunk(2, 1);
  const auto bound = static_cast<double>(how.bound);
  const at::Tensor gate = halves[0].clamp_max(bound), up = halves[1].clamp(-bound, bound);
  return (up + 1) * gate * (gate * static_cast<double>(how.slope)).sigmoid();
}

// Numbers within both bounds, around them, and far beyond.
TEST(BoundedSwish, ValuesAndGradientsAreAtens) {
  for (const SwishBounds how : {SwishBounds{1.702F, 7}, SwishBounds{1, 0.5F}})
    for (const float magnitude : {0.1F, 8.0F, 300.0F}) {
      const Floats in = noise(kSwishRows * 2 * kSwishWidth, 1, magnitude), dy = noise(kSwishRows * kSwishWidth, 2);
      const Floats got = same_everywhere([&](const Exec& exec) {
        Floats y = nans(kSwishRows * kSwishWidth), d = in;
        float *gate = d.data(), *up = gate + kSwishWidth;
        bounded_swish_mul(exec, how, gate, up, 2 * kSwishWidth, kSwishRows, kSwishWidth, y.data(), kSwishWidth);
        bounded_swish_mul_backward(exec, how, dy.data(), kSwishWidth, gate, up, 2 * kSwishWidth, kSwishRows,
                                   kSwishWidth, gate, up);
        y.insert(y.end(), d.begin(), d.end());
        return y;
      });
      const at::Tensor leaf = make_leaf(doubles(in, {kSwishRows, 2 * kSwishWidth}));
      const at::Tensor want = composition(how, leaf);
      const at::Tensor gradient = gradients_of(want, doubles(dy, want.sizes()), {leaf})[0];
      const at::Tensor all = at::cat({want.detach().flatten(), gradient.flatten()});
      EXPECT_LT(((doubles(got, all.sizes()) - all).abs() / (1 + all.abs())).max().item<double>(), 1e-5) << magnitude;
    }
}

TEST(BoundedSwish, OfWhatIsNoNumberIsNone) {
  for (const int64_t at : {0, 1}) {
    Floats in = constant(2, 3), y = constant(1, 0);
    in[static_cast<size_t>(at)] = NAN;
    bounded_swish_mul({}, {1.702F, 7}, in.data(), in.data() + 1, 2, 1, 1, y.data(), 1);
    EXPECT_TRUE(std::isnan(y[0])) << at;
  }
}

}  // namespace
}  // namespace collimate::tensor
