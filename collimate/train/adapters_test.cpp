// A learner over weights with adapters: what it changes, owns and saves.
#include <ATen/TensorOperators.h>

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/memory_state.h"
#include "collimate/train/learner.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"
#include "tests/support/train/small_rows.h"

namespace collimate::train {
namespace {

using Bits = std::vector<std::vector<float>>;

// Every parameter's values, the model's own or those of adapters.
Bits parameters_of(const model::Weights& weights, bool adapters) {
  Bits all;
  for (size_t i = 0; i < weights.params().size(); ++i) {
    if ((i >= weights.own_params()) != adapters) continue;
    const auto values = weights.values(static_cast<int>(i));
    all.emplace_back(values.begin(), values.end());
  }
  return all;
}

// A model with adapters that are zero, and a learner that maximises the likelihood of rows.
struct AdapterRun {
  struct Options {
    model::Recompute recompute = model::Recompute::kNone;
    int64_t micro_batch_tokens = 24;
    double dropout = 0;
    double learning_rate = 1e-2;
    double b_rate_ratio = 1;
  };
  explicit AdapterRun(const Options& options, comm::Group* group = nullptr) : weights(weights_with(options.dropout)) {
    model::initialize_lora(*weights, 4);
    learner = std::make_unique<Learner>(decoder,
                                        LearnerOptions{.schedule = {.peak = options.learning_rate},
                                                       .adam = {.epsilon = 1e-4, .b_rate_ratio = options.b_rate_ratio},
                                                       .micro_batch_tokens = options.micro_batch_tokens,
                                                       .recompute = options.recompute},
                                        tensor::Exec{}, TrainingRanks{group});
  }
  AdapterRun() : AdapterRun(Options()) {}
  UpdateReport update(const Batch& rows) { return learner->update(rows, small::likelihood()); }

  static std::shared_ptr<model::Weights> weights_with(double dropout) {
    return model::testing::tiny_weights(model::testing::tiny_shape("llama"),
                                        {.trained = true, .lora = {.rank = 4, .alpha = 8, .dropout = dropout}});
  }

  std::shared_ptr<model::Weights> weights;
  model::Model decoder{weights, {}};
  std::unique_ptr<Learner> learner;
};

TEST(Adapters, AreAllThatTrainingChanges) {
  for (const auto recompute : {model::Recompute::kNone, model::Recompute::kSelective, model::Recompute::kFull}) {
    AdapterRun run({.recompute = recompute});
    const Bits own = parameters_of(*run.weights, false), before = parameters_of(*run.weights, true);
    std::vector<double> losses;
    for (int i = 0; i < 4; ++i) {
      const UpdateReport report = run.update(small::short_rows(0, 8));
      EXPECT_GT(report.grad_norm, 0);
      losses.push_back(report.loss);
    }
    EXPECT_LT(losses.back(), losses.front());
    EXPECT_EQ(parameters_of(*run.weights, false), own);
    const Bits after = parameters_of(*run.weights, true);
    for (size_t i = 0; i < after.size(); ++i) EXPECT_NE(after[i], before[i]) << i;
  }
}

TEST(Adapters, OnlyTheyHaveMoments) {
  AdapterRun run;
  base::MemoryState state;
  run.learner->save(state);
  for (int s = 0; s < run.weights->segments(); ++s)
    for (const char* moment : {"first", "second"})
      EXPECT_EQ(state.has(fmt::format("adamw.{}.{}", moment, s)), !run.weights->segment_gradient(s).empty()) << s;
}

TEST(Adapters, AStateGoesOnAsTheRunWould) {
  AdapterRun whole, first, second;
  for (AdapterRun* run : {&whole, &first})
    for (int i = 0; i < 2; ++i) run->update(small::short_rows(8 * i, 8));
  base::MemoryState state;
  first.learner->save(state);
  second.learner->load(state);
  for (AdapterRun* run : {&whole, &second}) run->update(small::short_rows(16, 8));
  EXPECT_EQ(second.weights->checksum(), whole.weights->checksum());
  EXPECT_EQ(second.weights->version(), whole.weights->version());
}

// The draws depend on update and row, neither on how rows are split nor on when the run was stopped.
TEST(Adapters, DropTheSameHoweverRowsAreSplit) {
  const AdapterRun::Options dropping{.micro_batch_tokens = 1000, .dropout = 0.5};
  AdapterRun whole(dropping), none({.micro_batch_tokens = 1000}),
      split({.recompute = model::Recompute::kFull, .micro_batch_tokens = 8, .dropout = 0.5});
  for (int i = 0; i < 2; ++i) {
    const UpdateReport expected = whole.update(small::short_rows(0, 8)), given = split.update(small::short_rows(0, 8));
    EXPECT_NEAR(given.loss, expected.loss, 1e-6 * expected.loss);
    EXPECT_NEAR(given.grad_norm, expected.grad_norm, 1e-5 * expected.grad_norm);
    const UpdateReport without = none.update(small::short_rows(0, 8));
    EXPECT_GT(std::abs(without.grad_norm - expected.grad_norm), 1e-3 * expected.grad_norm);
  }
  base::MemoryState state;
  whole.learner->save(state);
  AdapterRun resumed(dropping);
  resumed.learner->load(state);
  for (AdapterRun* run : {&whole, &resumed}) run->update(small::short_rows(0, 8));
  EXPECT_EQ(resumed.weights->checksum(), whole.weights->checksum());
}

TEST(Adapters, DropOthersInEachUpdate) {
  AdapterRun run({.dropout = 0.5, .learning_rate = 0});
  const double first = run.update(small::short_rows(0, 8)).grad_norm;
  EXPECT_NE(run.update(small::short_rows(0, 8)).grad_norm, first);
  AdapterRun none({.learning_rate = 0});
  const double always = none.update(small::short_rows(0, 8)).grad_norm;
  EXPECT_EQ(none.update(small::short_rows(0, 8)).grad_norm, always);
}

// Behind a first update with AdamW's epsilon far below the gradient, B has moved by its rate, and A, as B was 0, not.
TEST(Adapters, BMayHaveARateOfItsOwn) {
  AdapterRun one, many({.b_rate_ratio = 16});
  for (AdapterRun* run : {&one, &many}) run->update(small::short_rows(0, 8));
  for (size_t i = one.weights->own_params(); i < one.weights->params().size(); ++i) {
    const auto a = one.weights->values(static_cast<int>(i)), b = many.weights->values(static_cast<int>(i));
    const bool is_b = model::is_adapter_b(one.weights->params()[i]);
    for (size_t j = 0; j < a.size(); ++j) EXPECT_NEAR(b[j], is_b ? 16 * a[j] : a[j], 1e-6 + 1e-5 * std::abs(b[j])) << i;
  }
}

// Two ranks, each with half of the rows, sum the gradients of adapters alone.
TEST(Adapters, OfTwoRanksAreThoseOfOne) {
  AdapterRun one;
  one.update(small::short_rows(0, 8));
  std::vector<Bits> trained(2);
  comm::with_ranks(2, "adapters_test", [&](comm::Group& group) {
    AdapterRun share({}, &group);
    share.update(small::short_rows(4 * group.rank(), 4));
    base::at(trained, group.rank()) = parameters_of(*share.weights, true);
  });
  EXPECT_EQ(trained[0], trained[1]);
  const Bits expected = parameters_of(*one.weights, true);
  for (size_t i = 0; i < expected.size(); ++i)
    for (size_t j = 0; j < expected[i].size(); ++j) EXPECT_NEAR(trained[0][i][j], expected[i][j], 1e-4) << i;
}

}  // namespace
}  // namespace collimate::train
