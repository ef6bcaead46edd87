#include "collimate/tensor/tape.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "collimate/tensor/autograd.h"

namespace collimate::tensor {
namespace {

// out = x · factor as a plain node.
Slot* scaled(Tape& tape, Arena& arena, Slot* x, float factor) {
  Slot* out = make_slot(arena, x->rows, x->width, x->wanted);
  for (int64_t i = 0; i < x->count(); ++i) out->value[i] = factor * x->value[i];
  if (!out->wanted) return out;
  tape.push([&tape, out, x, factor] {
    if (Tape::gradient(*out) == nullptr) return;
    float* into = tape.zeroed_target(*x);
    for (int64_t i = 0; i < x->count(); ++i) into[i] += factor * out->gradient[i];
  });
  return out;
}

struct Problem {
  std::vector<float> weight = {0.3F, -0.7F, 0.2F, 0.9F, -0.4F, 0.1F};  // [2, 3]
  std::vector<float> gradient = std::vector<float>(6, 0.0F);
  std::vector<float> input = {0.5F, -1, 0.25F, 2};  // [2, 2]
  Arena values, gradients;

  // L = Σ tanh(s W) ∘ (s W) + auxiliary, with s = 2x read twice and W used twice.
  float run(bool frozen, std::vector<float>* input_gradient) {
    values.reset();
    gradients.reset();
    Tape tape(gradients);
    Slot* x = make_slot(values, 2, 2, !frozen);
    std::memcpy(x->value, input.data(), sizeof(float) * 4);
    Slot* w = parameter_slot(values, weight.data(), gradient.data(), 2, 3);
    Slot* s = scaled(tape, values, x, 2);
    const AtenFunction product = [](const std::vector<at::Tensor>& in) { return in[0].matmul(in[1]); };
    Slot* const first_inputs[] = {s, w};
    Slot* first = aten_node(&tape, values, first_inputs, [](const auto& in) { return in[0].matmul(in[1]).tanh(); });
    Slot* second = aten_node(&tape, values, first_inputs, product);
    Slot* const both[] = {first, second};
    Slot* loss = aten_node(&tape, values, both, [](const auto& in) { return in[0].mul(in[1]).sum().view({1, 1}); });
    Slot* const aux_inputs[] = {s};
    Slot* auxiliary = aten_node(&tape, values, aux_inputs, [](const auto& in) {
      return in[0].mul(in[0]).sum().view({1, 1});
    });
    for (Slot* end : {loss, auxiliary})
      if (end->wanted) *tape.zeroed_target(*end) = 1;
    tape.run();
    if (input_gradient != nullptr && !frozen) input_gradient->assign(x->gradient, x->gradient + 4);
    EXPECT_EQ(x->gradient == nullptr, frozen);
    return *loss->value + *auxiliary->value;
  }
};

TEST(Tape, MatchesFiniteDifferences) {
  Problem problem;
  std::vector<float> input_gradient;
  problem.run(false, &input_gradient);
  const std::vector<float> weight_gradient = problem.gradient;
  const auto check = [&](std::vector<float>& values, size_t i, float expected) {
    const float kept = values[i], step = 1e-2F;
    values[i] = kept + step;
    const float up = problem.run(false, nullptr);
    values[i] = kept - step;
    const float down = problem.run(false, nullptr);
    values[i] = kept;
    EXPECT_NEAR((up - down) / (2 * step), expected, 2e-3 * std::max(1.0F, std::abs(expected))) << i;
  };
  for (size_t i = 0; i < 4; ++i) check(problem.input, i, input_gradient[i]);
  for (size_t i = 0; i < 6; ++i) check(problem.weight, i, weight_gradient[i]);
}

TEST(Tape, ParameterGradientsAddUp) {
  Problem problem;
  problem.run(false, nullptr);
  const std::vector<float> once = problem.gradient;
  problem.run(false, nullptr);
  for (size_t i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(problem.gradient[i], 2 * once[i]);
}

TEST(Tape, FrozenPrefixGetsNoGradient) {
  Problem trained, frozen;
  EXPECT_EQ(trained.run(false, nullptr), frozen.run(true, nullptr));
  EXPECT_EQ(trained.gradient, frozen.gradient);
}

TEST(Tape, UnusedOutputsAreSkipped) {
  Arena values, gradients;
  Tape tape(gradients);
  Slot* x = make_slot(values, 1, 1, true);
  *x->value = 3;
  Slot* used = scaled(tape, values, x, 5);
  scaled(tape, values, x, 100);
  *tape.zeroed_target(*used) = 1;
  tape.run();
  EXPECT_EQ(*x->gradient, 5);
}

TEST(Autograd, LeavesShareMemoryAndUnusedOnesGetZeros) {
  const at::Tensor leaf = make_leaf(at::ones({2}, at::kFloat));
  const at::Tensor other = make_leaf(leaf);
  EXPECT_EQ(leaf.data_ptr(), other.data_ptr());
  const auto gradients = gradients_of(leaf.mul(3).sum(), {leaf, other});
  EXPECT_EQ(*static_cast<const float*>(gradients[0].data_ptr()), 3);
  EXPECT_EQ(*static_cast<const float*>(gradients[1].data_ptr()), 0);
}

}  // namespace
}  // namespace collimate::tensor
