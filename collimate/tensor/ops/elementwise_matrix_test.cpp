// Elementwise ops and their gradients against their composition in ATen, in double: ops × shapes × magnitudes ×
// instruction sets. A new op is a row of kElementwise.
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/tensor/autograd.h"
#include "collimate/tensor/ops/activation.h"
#include "tests/support/tensor/ops/aten_doubles.h"

namespace collimate::tensor {
namespace {

// A row of `in` has the op's inputs side by side, each of `width` numbers.
struct Sizes {
  int64_t rows, width;
};

struct Elementwise {
  const char* name;
  int64_t inputs;
  // y [rows, width] of in [rows, inputs * width].
  void (*forward)(const Exec& exec, const Floats& in, Sizes s, Floats& y);
  // `in` becomes its gradient, dy may be overwritten.
  void (*backward)(const Exec& exec, Floats& dy, Floats& in, Sizes s);
  at::Tensor (*composition)(const std::vector<at::Tensor>& in);
  double tolerance;           // of y: times the product of the inputs
  double gradient_tolerance;  // of an input's gradient: times 1 + the product of the other inputs
};

// These print the names of failed tests.
void PrintTo(const Elementwise& op, std::ostream* out) { *out << op.name; }
void PrintTo(const Sizes& s, std::ostream* out) { *out << s.rows << "x" << s.width; }

// Operations of one input, whose results lie over it.
template <auto Forward>
void in_place(const Exec& exec, const Floats& in, Sizes s, Floats& y) {
  y = in;
  Forward(exec, y.data(), s.rows * s.width, y.data());
}
template <auto Backward>
void in_place_gradient(const Exec& exec, Floats& dy, Floats& in, Sizes s) {
  Backward(exec, dy.data(), in.data(), s.rows * s.width, dy.data());
  in = dy;
}

// With a gate beside the other input.
template <auto Forward>
void gated(const Exec& exec, const Floats& in, Sizes s, Floats& y) {
  Forward(exec, in.data(), in.data() + s.width, 2 * s.width, s.rows, s.width, y.data(), s.width);
}
template <auto Backward>
void gated_gradient(const Exec& exec, Floats& dy, Floats& in, Sizes s) {
  float *gate = in.data(), *other = in.data() + s.width;
  Backward(exec, dy.data(), s.width, gate, other, 2 * s.width, s.rows, s.width, gate, other);
}

const Elementwise kElementwise[] = {
    {"silu_mul", 2, gated<silu_mul>, gated_gradient<silu_mul_backward>,
     [](const std::vector<at::Tensor>& in) { return at::silu(in[0]) * in[1]; }, 1e-6, 1e-5},
    {"gelu_tanh_mul", 2, gated<gelu_tanh_mul>, gated_gradient<gelu_tanh_mul_backward>,
     [](const std::vector<at::Tensor>& in) { return at::gelu(in[0], "tanh") * in[1]; }, 1e-6, 1e-5},
    {"gelu_tanh", 1, in_place<gelu_tanh>, in_place_gradient<gelu_tanh_backward>,
     [](const std::vector<at::Tensor>& in) { return at::gelu(in[0], "tanh"); }, 3e-7, 1e-6},
    {"gelu", 1, in_place<gelu>, in_place_gradient<gelu_backward>,
     [](const std::vector<at::Tensor>& in) { return at::gelu(in[0]); }, 3e-7, 1e-6},
    {"relu", 1, in_place<relu>, in_place_gradient<relu_backward>,
     [](const std::vector<at::Tensor>& in) { return at::relu(in[0]); }, 0, 0},
    {"relu_squared", 1, in_place<relu_squared>, in_place_gradient<relu_squared_backward>,
     [](const std::vector<at::Tensor>& in) { return at::relu(in[0]).square(); }, 2e-5, 6e-5},  // of 200²
};

using ElementwiseCase = std::tuple<Elementwise, Sizes>;

class ElementwiseMatrix : public testing::TestWithParam<ElementwiseCase> {
 protected:
  const Elementwise& op() const { return std::get<0>(GetParam()); }
  Sizes size() const { return std::get<1>(GetParam()); }
  int64_t count() const { return size().rows * size().width; }
  Floats inputs(float magnitude) const { return noise(op().inputs * count(), 1, magnitude); }

  // An input [rows, width] of those side by side.
  at::Tensor input(const at::Tensor& all, int64_t i) const {
    return all.slice(1, i * size().width, (i + 1) * size().width);
  }
  // The product of the inputs but `without`.
  at::Tensor product(const at::Tensor& all, int64_t without) const {
    at::Tensor product = at::ones({size().rows, size().width}, at::kDouble);
    for (int64_t i = 0; i < op().inputs; ++i)
      if (i != without) product = product * input(all, i).abs();
    return product;
  }
};

void expect_within(const at::Tensor& got, const at::Tensor& want, const at::Tensor& bound, const std::string& what) {
  const at::Tensor beyond = (got - want).abs() - bound;
  EXPECT_LE(beyond.max().item<double>(), 0) << what;
}

TEST_P(ElementwiseMatrix, ValuesAndGradientsAreAtens) {
  const auto [rows, width] = size();
  for (const float magnitude : {0.01F, 1.0F, 6.0F, 30.0F, 200.0F}) {
    const std::string at_magnitude = " of numbers up to " + std::to_string(magnitude);
    const Floats in = inputs(magnitude), dy = noise(count(), 2);
    const Floats y = same_everywhere([&](const Exec& exec) {
      Floats out = nans(count());
      op().forward(exec, in, size(), out);
      return out;
    });
    const Floats d = same_everywhere([&](const Exec& exec) {
      Floats out = in, passed = dy;
      op().backward(exec, passed, out, size());
      return out;
    });
    const at::Tensor all = doubles(in, {rows, op().inputs * width});
    std::vector<at::Tensor> leaves;
    for (int64_t i = 0; i < op().inputs; ++i) leaves.push_back(make_leaf(input(all, i)));
    const at::Tensor want = op().composition(leaves);
    const auto gradients = gradients_of(want, doubles(dy, {rows, width}), leaves);
    expect_within(doubles(y, {rows, width}), want.detach(), op().tolerance * product(all, -1), "values" + at_magnitude);
    const at::Tensor got = doubles(d, {rows, op().inputs * width});
    for (int64_t i = 0; i < op().inputs; ++i)
      expect_within(input(got, i), base::at(gradients, i), op().gradient_tolerance * (1 + product(all, i)),
                    "gradient of input " + std::to_string(i) + at_magnitude);
  }
}

TEST_P(ElementwiseMatrix, NaNStaysNaN) {
  for (int64_t i = 0; i < op().inputs; ++i) {
    Floats in = inputs(1), y = constant(count(), 0);
    for (int64_t r = 0; r < size().rows; ++r)
      std::fill_n(in.begin() + (r * op().inputs + i) * size().width, size().width,
                  std::numeric_limits<float>::quiet_NaN());
    op().forward(Exec{}, in, size(), y);
    for (const float v : y) EXPECT_TRUE(std::isnan(v)) << "input " << i;
  }
}

std::string elementwise_name(const testing::TestParamInfo<ElementwiseCase>& info) {
  const auto [rows, width] = std::get<1>(info.param);
  return std::string(std::get<0>(info.param).name)
      .append("_")
      .append(std::to_string(rows))
      .append("x")
      .append(std::to_string(width));
}

INSTANTIATE_TEST_SUITE_P(Ops, ElementwiseMatrix,
                         testing::Combine(testing::ValuesIn(kElementwise),
                                          testing::Values(Sizes{1, 1}, Sizes{3, 21}, Sizes{5, 16}, Sizes{2, 129},
                                                          Sizes{300, 130})),
                         elementwise_name);

}  // namespace
}  // namespace collimate::tensor
