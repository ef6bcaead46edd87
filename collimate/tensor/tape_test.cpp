#include "collimate/tensor/tape.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "collimate/tensor/autograd.h"
#include "collimate/tensor/ops/embedding.h"
#include "tests/support/tensor/tape_aten.h"

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

const std::vector<int32_t> kIds = {2, 0, 2, 3}, kTargets = {1, 4, 0, 2};

// A parameter as a slot: what flows into it is added to `gradient`; null for a frozen one.
Slot* parameter_slot(Arena& arena, float* value, float* gradient, int64_t rows, int64_t width) {
  Slot* slot = new (arena.take_host(sizeof(Slot))) Slot;
  slot->value = value;
  slot->rows = rows;
  slot->width = width;
  slot->wanted = slot->written = gradient != nullptr;
  slot->gradient = gradient;
  return slot;
}

// A toy model: L = Σ s∘s − Σ log softmax(tanh(s W) W Eᵀ)[target] with s = 2 E[ids], the first sum an auxiliary loss.
// The table E is embedding and head, W and s are used twice.
struct Problem {
  std::vector<float> table = {0.3F, -0.7F, 0.2F, 0.9F,  -0.4F, 0.1F, -0.2F, 0.5F,
                              0.6F, 0.4F,  0.8F, -0.3F, -0.6F, 0.1F, 0.7F};               // E [5, 3]
  std::vector<float> weight = {0.5F, -0.3F, 0.8F, -0.9F, 0.4F, 0.2F, 0.1F, 0.7F, -0.6F};  // W [3, 3]
  std::vector<float> table_gradient = std::vector<float>(15), weight_gradient = std::vector<float>(9);
  Arena values, gradients;

  // E[ids] as a plain node.
  Slot* embedded(Tape& tape, Slot* e) {
    Slot* out = make_slot(values, std::ssize(kIds), e->width, e->wanted);
    embedding({}, e->value, e->rows, e->width, kIds.data(), out->rows, out->value);
    if (!out->wanted) return out;
    tape.push([&tape, out, e] {
      if (Tape::gradient(*out) == nullptr) return;
      embedding_backward({}, out->gradient, kIds.data(), out->rows, e->rows, e->width, tape.zeroed_target(*e));
    });
    return out;
  }
  Slot* aten(Tape& tape, const std::vector<Slot*>& inputs, const AtenFunction& function) {
    return aten_node(&tape, values, inputs, function);
  }

  // L; adds to the gradients. The prefix that may be frozen is the table, and with it all before the first W.
  float run(bool frozen = false) {
    values.reset();
    gradients.reset();
    Tape tape(gradients);
    Slot* e = parameter_slot(values, table.data(), frozen ? nullptr : table_gradient.data(), 5, 3);
    Slot* w = parameter_slot(values, weight.data(), weight_gradient.data(), 3, 3);
    Slot* x = embedded(tape, e);
    Slot* s = scaled(tape, values, x, 2);
    Slot* inner = aten(tape, {s, w}, [](const auto& in) { return in[0].matmul(in[1]).tanh(); });
    Slot* outer = aten(tape, {inner, w}, [](const auto& in) { return in[0].matmul(in[1]); });
    Slot* logits = aten(tape, {outer, e}, [](const auto& in) { return in[0].matmul(in[1].t()); });
    Slot* loss = aten(tape, {logits}, [](const auto& in) { return likelihood(in[0]).neg().view({1, 1}); });
    Slot* auxiliary = aten(tape, {s}, [](const auto& in) { return in[0].mul(in[0]).sum().view({1, 1}); });
    for (Slot* end : {loss, auxiliary})
      if (end->wanted) *tape.zeroed_target(*end) = 1;
    tape.run();
    for (const Slot* slot : {x, s, auxiliary}) EXPECT_EQ(slot->gradient == nullptr, frozen);
    return *loss->value + *auxiliary->value;
  }

  static at::Tensor likelihood(const at::Tensor& logits) {
    return logits.log_softmax(1).gather(1, at::tensor(kTargets, at::kLong).unsqueeze(1)).sum();
  }
};

// ATen's autograd alone gives the same, in double: L, dL/dE [15] and dL/dW [9].
struct AtenResult {
  double loss = 0;
  std::vector<double> table_gradient, weight_gradient;

  explicit AtenResult(const Problem& problem) {
    const at::Tensor e = make_leaf(at::tensor(problem.table, at::kDouble).view({5, 3}));
    const at::Tensor w = make_leaf(at::tensor(problem.weight, at::kDouble).view({3, 3}));
    const at::Tensor s = e.index_select(0, at::tensor(kIds, at::kLong)).mul(2);
    const at::Tensor logits = s.matmul(w).tanh().matmul(w).matmul(e.t());
    const at::Tensor whole = s.mul(s).sum().sub(Problem::likelihood(logits));
    loss = whole.item<double>();
    const std::vector<at::Tensor> parts = gradients_of(whole, {e, w});
    table_gradient = numbers(parts[0]);
    weight_gradient = numbers(parts[1]);
  }
  static std::vector<double> numbers(const at::Tensor& tensor) {
    const at::Tensor whole = tensor.contiguous();
    const auto* data = static_cast<const double*>(whole.data_ptr());
    return {data, data + whole.numel()};
  }
};

void expect_close(const std::vector<float>& got, const std::vector<double>& expected, const char* what) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 1e-5 * std::max(1.0, std::abs(expected[i]))) << what << " " << i;
}

TEST(Tape, MatchesFiniteDifferences) {
  Problem problem;
  problem.run();
  const std::vector<float> table_gradient = problem.table_gradient, weight_gradient = problem.weight_gradient;
  const auto check = [&](std::vector<float>& values, size_t i, float expected) {
    const float kept = values[i], step = 1e-2F;
    values[i] = kept + step;
    const float up = problem.run();
    values[i] = kept - step;
    const float down = problem.run();
    values[i] = kept;
    EXPECT_NEAR((up - down) / (2 * step), expected, 2e-3 * std::max(1.0F, std::abs(expected))) << i;
  };
  for (size_t i = 0; i < problem.table.size(); ++i) check(problem.table, i, table_gradient[i]);
  for (size_t i = 0; i < problem.weight.size(); ++i) check(problem.weight, i, weight_gradient[i]);
}

TEST(Tape, MatchesAten) {
  Problem problem;
  const float loss = problem.run();
  const AtenResult expected(problem);
  EXPECT_NEAR(loss, expected.loss, 1e-5 * std::abs(expected.loss));
  expect_close(problem.table_gradient, expected.table_gradient, "table");
  expect_close(problem.weight_gradient, expected.weight_gradient, "weight");
}

TEST(Tape, ParameterGradientsAddUp) {
  Problem problem;
  problem.run();
  std::vector<double> table(problem.table_gradient.begin(), problem.table_gradient.end());
  std::vector<double> weight(problem.weight_gradient.begin(), problem.weight_gradient.end());
  for (double& value : table) value *= 2;
  for (double& value : weight) value *= 2;
  problem.run();
  expect_close(problem.table_gradient, table, "table");
  expect_close(problem.weight_gradient, weight, "weight");
}

TEST(Tape, FrozenPrefixGetsNoGradient) {
  Problem trained, frozen;
  EXPECT_EQ(trained.run(), frozen.run(true));
  EXPECT_EQ(trained.weight_gradient, frozen.weight_gradient);
  expect_close(frozen.weight_gradient, AtenResult(frozen).weight_gradient, "weight");
  EXPECT_EQ(frozen.table_gradient, std::vector<float>(15));
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
