// Losses beyond the recipes' own, on rows small enough for a pocket calculator.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collimate/base/error.h"
#include "collimate/rlhf/loss/kto.h"
#include "collimate/rlhf/loss/policy.h"
#include "collimate/rlhf/loss/preference.h"
#include "collimate/rlhf/loss/reference_free.h"
#include "collimate/rlhf/loss/sft.h"

namespace collimate::rlhf {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Two rows of a prompt token and two trained ones; sums of log-probs -3 and -5, of the reference -4 and -4.5.
class FurtherLoss : public ::testing::Test {
 protected:
  FurtherLoss() {
    rows_.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>{{0, 1, 1}, {0, 1, 1}});
    rows_.set_ragged(batch::kReferenceLogProbs, std::vector<std::vector<float>>{{0, -2, -2}, {0, -2.5F, -2}});
    rows_.set_ragged(kCompletion, std::vector<std::vector<float>>{{0, 0, 1}, {0, 1, 1}});
    rows_.set(kDesirable, std::vector<float>{1, 0});
    rows_.set(kKlEstimate, std::vector<float>{0.25F, 0.25F});
  }

  double value(const Loss& loss) const {
    LossContext context(rows_, {.log_probs = at::tensor({-1.F, -2.F, -2.F, -3.F})}, {4, 2});
    return loss.value(context).item<double>();
  }

  Batch rows_;
};

TEST_F(FurtherLoss, DftWeighsTokensByTheirProbability) {
  const double expected = (std::exp(-1) + 4 * std::exp(-2) + 3 * std::exp(-3)) / 4;
  EXPECT_NEAR(value(sft_loss({.loss_type = "dft"})), expected, 1e-6);
  EXPECT_THROW(sft_loss({.loss_type = "mse"}), base::InputError);
}

TEST_F(FurtherLoss, KtoComparesWithTheEstimateOfTheKl) {
  const double gain = 1 - sigmoid(0.1 * (1.0 - 0.25)), harm = 1 - sigmoid(0.1 * (0.25 + 0.5));
  EXPECT_NEAR(value(kto_loss({.undesirable_weight = 1.5})), (gain + 1.5 * harm) / 2, 1e-6);
  EXPECT_NEAR(value(kto_loss({.loss_type = "apo_zero_unpaired"})), (1 - sigmoid(0.1) + sigmoid(-0.05)) / 2, 1e-6);
  EXPECT_THROW(kto_loss({.loss_type = "bco"}), base::InputError);
}

TEST_F(FurtherLoss, OrpoReadsMeansOfAnswersAndTheLikelihoodOfAllTokens) {
  const auto log_odds = [](double mean) { return mean - std::log1p(-std::exp(mean)); };
  const double odds = log_odds(-2.0) - log_odds(-2.5);
  EXPECT_NEAR(value(orpo_loss({.beta = 0.1})), 1.5 - 0.1 * std::log(sigmoid(odds)), 1e-6);
}

TEST_F(FurtherLoss, CpoAndSimpo) {
  EXPECT_NEAR(value(cpo_loss({})), -std::log(sigmoid(0.1 * 3.0)) + 1.5, 1e-6);
  EXPECT_NEAR(value(cpo_loss({.loss_type = "hinge", .cpo_alpha = 0.0})), 0.7, 1e-6);
  EXPECT_NEAR(value(cpo_loss({.loss_type = "simpo", .beta = 2.0, .simpo_gamma = 0.5, .cpo_alpha = 0.0})),
              -std::log(sigmoid(2.0 * 0.5 - 0.5)), 1e-6);
  EXPECT_THROW(cpo_loss({.loss_type = "kto_pair"}), base::InputError);
}

TEST_F(FurtherLoss, DivergencesTurnLogRatiosIntoScores) {
  const auto expected = [](double chosen, double rejected) { return -std::log(sigmoid(0.1 * (chosen - rejected))); };
  EXPECT_NEAR(value(dpo_loss({.f_divergence = "js_divergence"})),
              expected(std::log(sigmoid(1.0)), std::log(sigmoid(-0.5))), 1e-6);
  EXPECT_NEAR(value(dpo_loss({.f_divergence = "forward_kl"})), expected(-std::exp(-1.0), -std::exp(0.5)), 1e-6);
  EXPECT_NEAR(value(dpo_loss({.f_divergence = "alpha_divergence"})), expected(-2 * std::exp(-0.5), -2 * std::exp(0.25)),
              1e-6);
  EXPECT_THROW(dpo_loss({.f_divergence = "renyi"}), base::InputError);
  EXPECT_THROW(dpo_loss({.loss_type = "exo_pair"}), base::InputError);
}

TEST_F(FurtherLoss, WeightedSumAddsValuesAndNeeds) {
  const Loss sum = weighted_sum({dpo_loss({}), dpo_loss({.loss_type = "sft"})}, {0.5, 2.0});
  EXPECT_NEAR(value(sum), 0.5 * value(dpo_loss({})) + 2.0 * 1.5, 1e-6);
  EXPECT_EQ(sum.needs.rows_per_unit, 2);
  EXPECT_THROW(weighted_sum({dpo_loss({})}, {}), base::InputError);
}

TEST_F(FurtherLoss, LuspoSumsAndVespoWeighsSequences) {
  rows_.set_ragged(batch::kAdvantages, std::vector<std::vector<float>>{{0, 1, 1}, {0, -1, -1}});
  rows_.set_ragged(batch::kOldLogProbs, std::vector<std::vector<float>>{{0, -1, -2}, {0, -2, -3}});
  EXPECT_NEAR(value(policy_loss({.loss_type = "luspo"})), 0.0, 1e-6);
  EXPECT_NEAR(value(policy_loss({.loss_type = "vespo"})), (3.0 - 5.0) / 4, 1e-6);  // φ(1) = 1
  rows_.set_ragged(batch::kOldLogProbs, std::vector<std::vector<float>>{{0, -1, -2.5F}, {0, -2, -3}});
  const double weight = std::exp(2 * 0.5 + 3 - 3 * std::exp(0.5));
  EXPECT_NEAR(value(policy_loss({.loss_type = "vespo"})), (3.0 * weight - 5.0) / 4, 1e-6);
}

}  // namespace
}  // namespace collimate::rlhf
