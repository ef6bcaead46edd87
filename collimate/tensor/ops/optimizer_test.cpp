#include "collimate/tensor/ops/optimizer.h"

#include <cmath>

#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

TEST(Adamw, FollowsTheFormulaForSeveralSteps) {
  constexpr int64_t kCount = 37;
  AdamwOptions o{.learning_rate = 3e-3, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-3, .weight_decay = 0.1};
  Floats state = noise(3 * kCount, 1);
  for (int64_t i = kCount; i < 3 * kCount; ++i) state[i] = 0;
  std::vector<double> p(state.begin(), state.begin() + kCount), m(kCount), v(kCount);
  for (o.step = 1; o.step <= 5; ++o.step) {
    const Floats g = noise(kCount, static_cast<uint32_t>(o.step) + 7);
    o.grad_scale = 0.5F;
    const Floats before = state;
    state = same_everywhere([&](const Exec& exec) {
      Floats s = before;
      adamw(exec, s.data(), g.data(), s.data() + kCount, s.data() + 2 * kCount, kCount, o);
      return s;
    });
    for (int64_t i = 0; i < kCount; ++i) {
      const double grad = 0.5 * g[i];
      m[i] = 0.8 * m[i] + 0.2 * grad;
      v[i] = 0.95 * v[i] + 0.05 * grad * grad;
      const double root = std::sqrt(v[i] / (1 - std::pow(0.95, o.step)));
      p[i] = p[i] * (1 - 3e-4) - 3e-3 * m[i] / (1 - std::pow(0.8, o.step)) / (root + 1e-3);
    }
  }
  EXPECT_TRUE(close(Floats(state.begin(), state.begin() + kCount), p, 1e-6));
  EXPECT_TRUE(close(Floats(state.begin() + kCount, state.begin() + 2 * kCount), m, 1e-6));
  EXPECT_TRUE(close(Floats(state.begin() + 2 * kCount, state.end()), v, 1e-6));
}

double sum_of_squares(const Exec& exec, const Floats& x) {
  const auto count = static_cast<int64_t>(x.size());
  std::vector<double> sums(static_cast<size_t>(squares_chunks(count)));
  squares_of_chunks(exec, x.data(), count, sums.data());
  return sum_of_chunks(sums);
}

TEST(Norms, SumOfSquaresDoesNotDependOnThreads) {
  host::CorePool three(3);
  for (const int64_t count : {0, 1, 7, 4096, 100003}) {
    const Floats x = noise(count, 2);
    double want = 0;
    for (const float v : x) want += static_cast<double>(v) * v;
    const double one = sum_of_squares(Exec{}, x);
    EXPECT_NEAR(one, want, 1e-9 * (1 + want));
    EXPECT_EQ(one, sum_of_squares(Exec{&three}, x));
  }
}

TEST(Norms, Scale) {
  const Floats x = noise(40000, 3);
  Floats half = x;
  scale(Exec{}, 0.5F, 40000, half.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(half[i], 0.5F * x[i]) << i;
}

TEST(Averages, MoveTowardsAndExchange) {
  host::CorePool three(3);
  const Floats from = noise(40000, 3), goal = noise(40000, 4);
  for (const Exec& exec : {Exec{}, Exec{&three}}) {
    Floats x = from, y = goal;
    move_towards(exec, 0.25F, goal.data(), 40000, x.data());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], from[i] + 0.25F * (goal[i] - from[i])) << i;
    const Floats moved = x;
    exchange(exec, 40000, x.data(), y.data());
    EXPECT_EQ(x, goal);
    EXPECT_EQ(y, moved);
  }
}

}  // namespace
}  // namespace collimate::tensor
