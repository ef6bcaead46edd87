#include "collimate/train/moving_average.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collimate/base/at.h"
#include "collimate/base/memory_state.h"
#include "collimate/train/learner.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/train/small_rows.h"

namespace collimate::train {
namespace {

constexpr double kDecay = 0.9;
using Values = std::vector<std::vector<float>>;

Values averaged_parameters(const model::Weights& weights) {
  Values all;
  for (size_t i = 0; i < weights.params().size(); ++i) {
    const auto values = weights.values(static_cast<int>(i));
    all.emplace_back(values.begin(), values.end());
  }
  return all;
}

// A learner with an average, of all weights or of adapters.
struct AveragedRun {
  explicit AveragedRun(model::LoraOptions lora = {}, comm::Group* group = nullptr, int zero = 0)
      : weights(model::testing::tiny_weights(model::testing::tiny_shape("llama"), {.trained = true, .lora = lora})) {
    if (lora.on()) model::initialize_lora(*weights, 4);
    learner = std::make_unique<Learner>(
        decoder, LearnerOptions{.schedule = {.peak = 1e-2}, .ema = kDecay, .micro_batch_tokens = 24, .zero = zero},
        tensor::Exec{}, TrainingRanks{group});
  }
  void update(const Batch& rows) { learner->update(rows, small::likelihood()); }
  Values average() {
    const AverageInPlace in_place(*learner->average());
    return averaged_parameters(*weights);
  }

  std::shared_ptr<model::Weights> weights;
  model::Model decoder{weights, {}};
  std::unique_ptr<Learner> learner;
};

TEST(MovingAverage, IsThatOfTheWeightsAfterEachUpdateInDouble) {
  AveragedRun run;
  const Values first = averaged_parameters(*run.weights);
  EXPECT_EQ(run.average(), first) << "it begins as the weights";
  std::vector<std::vector<double>> expected;
  for (const auto& values : first) expected.emplace_back(values.begin(), values.end());
  for (int u = 0; u < 4; ++u) {
    run.update(small::short_rows(4 * u, 4));
    const Values now = averaged_parameters(*run.weights);
    for (size_t p = 0; p < now.size(); ++p)
      for (size_t i = 0; i < now[p].size(); ++i) expected[p][i] = kDecay * expected[p][i] + (1 - kDecay) * now[p][i];
  }
  const Values weights = averaged_parameters(*run.weights), average = run.average();
  EXPECT_EQ(averaged_parameters(*run.weights), weights) << "they are back";
  double moved = 0;
  for (size_t p = 0; p < average.size(); ++p)
    for (size_t i = 0; i < average[p].size(); ++i) {
      EXPECT_NEAR(average[p][i], expected[p][i], 1e-6 * (1 + std::abs(expected[p][i]))) << p << " " << i;
      moved = std::max(moved, std::abs(double{average[p][i]} - weights[p][i]));
    }
  EXPECT_GT(moved, 1e-3) << "it lags behind the weights";
}

TEST(MovingAverage, ChangesNothingThatIsTrained) {
  AveragedRun with;
  AveragedRun without;
  without.learner =
      std::make_unique<Learner>(without.decoder, LearnerOptions{.schedule = {.peak = 1e-2}, .micro_batch_tokens = 24},
                                tensor::Exec{}, TrainingRanks{});
  EXPECT_EQ(without.learner->average(), nullptr);
  for (AveragedRun* run : {&with, &without}) run->update(small::short_rows(0, 4));
  EXPECT_EQ(averaged_parameters(*with.weights), averaged_parameters(*without.weights));
}

TEST(MovingAverage, GoesOnFromAStateWithTheSameBits) {
  AveragedRun whole;
  for (int u = 0; u < 3; ++u) whole.update(small::short_rows(4 * u, 4));
  AveragedRun cut;
  cut.update(small::short_rows(0, 4));
  base::MemoryState state;
  cut.learner->save(state);
  AveragedRun rest;
  rest.learner->load(state);
  EXPECT_EQ(rest.average(), cut.average());
  EXPECT_NE(rest.average(), averaged_parameters(*rest.weights));
  for (int u = 1; u < 3; ++u) rest.update(small::short_rows(4 * u, 4));
  EXPECT_EQ(rest.average(), whole.average());
}

TEST(MovingAverage, OfAdaptersLeavesTheModelsOwnWeights) {
  AveragedRun run({.rank = 4, .alpha = 8});
  const Values first = averaged_parameters(*run.weights);
  for (int u = 0; u < 3; ++u) run.update(small::short_rows(4 * u, 4));
  const Values average = run.average();
  size_t changed = 0;
  for (size_t p = 0; p < first.size(); ++p) {
    if (p < run.weights->own_params())
      EXPECT_EQ(average[p], first[p]) << p;
    else
      changed += average[p] != first[p] ? 1 : 0;
  }
  EXPECT_GT(changed, 0U);
}

// Ranks that share the optimizer have the whole average each, whatever they share.
TEST(MovingAverage, IsTheSameOnRanksThatShareTheOptimizer) {
  AveragedRun one;
  for (int u = 0; u < 2; ++u) one.update(small::short_rows(4 * u, 4));
  const Values expected = one.average();
  std::vector<Values> averages;
  for (const int zero : {0, 1, 2}) {
    std::vector<Values> ranks(2);
    comm::with_ranks(2, "moving_average_test", [&](comm::Group& group) {
      AveragedRun run({}, &group, zero);
      for (int u = 0; u < 2; ++u) run.update(small::short_rows(4 * u + 2 * group.rank(), 2));
      base::at(ranks, group.rank()) = run.average();
    });
    EXPECT_EQ(ranks[0], ranks[1]) << zero;
    averages.push_back(ranks[0]);
  }
  EXPECT_EQ(averages[0], averages[1]);
  EXPECT_EQ(averages[0], averages[2]);
  for (size_t p = 0; p < expected.size(); ++p)
    for (size_t i = 0; i < expected[p].size(); ++i) EXPECT_NEAR(averages[0][p][i], expected[p][i], 2e-4) << p;
}

}  // namespace
}  // namespace collimate::train
