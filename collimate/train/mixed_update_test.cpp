// Updates of rows with several objectives, whose losses and gradients add up.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collimate/base/at.h"
#include "collimate/batch/token_rows.h"
#include "collimate/train/learner.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::train {
namespace {

using Numbers = std::vector<std::vector<float>>;

Batch mixed_rows(int64_t first, int64_t count, int64_t step) {
  batch::TokenRows rows;
  for (int64_t r = first; r < first + count; ++r) {
    std::vector<int32_t> ids;
    for (int64_t t = 0; t < 5 + r % 4; ++t) ids.push_back(static_cast<int32_t>((r * step + t * t * 3 + t) % 37));
    rows.add(r, std::move(ids), 1);
  }
  return rows.batch();
}

// Weight times the mean negative log-prob of all tokens.
Objective mean_loss(double weight, std::optional<float> temperature = {}) {
  Objective objective;
  objective.loss = [weight](const Batch&, const batch::Quantities& quantities, const batch::GlobalCounts& counts,
                            const batch::Surveys&) {
    return quantities.log_probs.sum() * at::Scalar(-weight / counts.tokens);
  };
  objective.temperature = temperature;
  return objective;
}

struct MixedRun {
  explicit MixedRun(int64_t micro_batch_tokens = 1000, comm::Group* group = nullptr)
      : learner(decoder,
                {.schedule = {.peak = 1e-2},
                 .max_grad_norm = 0,
                 .micro_batch_tokens = micro_batch_tokens,
                 .temperature = 0.7F},
                tensor::Exec{}, TrainingRanks{group}) {}

  // Gives the gradient of the last update, parameter by parameter.
  Numbers gradients() {
    Numbers all;
    for (int p = 0; p < static_cast<int>(weights->params().size()); ++p) {
      const auto gradient = weights->gradient_of(p);
      all.emplace_back(gradient.begin(), gradient.end());
    }
    return all;
  }

  std::shared_ptr<model::Weights> weights =
      model::testing::tiny_weights(model::testing::tiny_shape("llama"), {.trained = true});
  model::Model decoder{weights, {}};
  Learner learner;
};

constexpr double kWeight = 27.8;

TEST(MixedUpdate, LossAndGradientAreTheSumsOfThoseOfItsParts) {
  const Batch samples = mixed_rows(0, 6, 13), texts = mixed_rows(0, 6, 7);
  const Objective own = mean_loss(1), of_texts = mean_loss(kWeight, 1.F), unweighted = mean_loss(1, 1.F);
  MixedRun both, first, second;
  const UpdateReport mixed = both.learner.update({{samples, &own}, {texts, &of_texts}});
  const UpdateReport alone = first.learner.update(samples, own), text = second.learner.update(texts, unweighted);
  EXPECT_NEAR(mixed.loss, alone.loss + kWeight * text.loss, 1e-5 * mixed.loss);
  EXPECT_EQ(mixed.rows, 6) << "the first part's";
  EXPECT_EQ(mixed.trainable_tokens, alone.trainable_tokens);
  EXPECT_EQ(mixed.tokens, alone.tokens + text.tokens);
  const Numbers sum = both.gradients(), a = first.gradients(), b = second.gradients();
  for (size_t p = 0; p < sum.size(); ++p)
    for (size_t i = 0; i < sum[p].size(); ++i) {
      const double expected = a[p][i] + kWeight * b[p][i];
      EXPECT_NEAR(sum[p][i], expected, 1e-4 * (1 + std::abs(expected))) << p << " " << i;
    }
}

TEST(MixedUpdate, DoesNotDependOnMicroBatches) {
  const Objective own = mean_loss(1), of_texts = mean_loss(kWeight, 1.F);
  MixedRun whole, small(9);
  const auto update = [&](MixedRun& run) {
    return run.learner.update({{mixed_rows(0, 6, 13), &own}, {mixed_rows(0, 6, 7), &of_texts}});
  };
  const UpdateReport one = update(whole), many = update(small);
  EXPECT_EQ(one.micro_batches, 2);
  EXPECT_GT(many.micro_batches, 6);
  EXPECT_NEAR(one.loss, many.loss, 1e-5 * one.loss);
  EXPECT_NEAR(one.grad_norm, many.grad_norm, 1e-4 * one.grad_norm);
}

TEST(MixedUpdate, TextsAreMeasuredAtTheirOwnTemperature) {
  const Objective drawn = mean_loss(1), plain = mean_loss(1, 1.F);
  MixedRun at_sampling, at_one;
  const Batch texts = mixed_rows(0, 4, 7);
  EXPECT_GT(std::abs(at_sampling.learner.update(texts, drawn).loss - at_one.learner.update(texts, plain).loss), 1e-3);
}

TEST(MixedUpdate, OfTwoRanksIsThatOfOne) {
  const Objective own = mean_loss(1), of_texts = mean_loss(kWeight, 1.F);
  MixedRun one;
  const UpdateReport expected = one.learner.update({{mixed_rows(0, 6, 13), &own}, {mixed_rows(0, 6, 7), &of_texts}});
  std::vector<UpdateReport> reports(2);
  comm::with_ranks(2, "mixed_update_test", [&](comm::Group& group) {
    MixedRun share(1000, &group);
    const int64_t first = 3 * group.rank();
    base::at(reports, group.rank()) =
        share.learner.update({{mixed_rows(first, 3, 13), &own}, {mixed_rows(first, 3, 7), &of_texts}});
  });
  for (const UpdateReport& report : reports) {
    EXPECT_NEAR(report.loss, expected.loss, 1e-5 * expected.loss);
    EXPECT_NEAR(report.grad_norm, expected.grad_norm, 1e-4 * expected.grad_norm);
  }
}

}  // namespace
}  // namespace collimate::train
