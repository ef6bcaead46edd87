#include <gtest/gtest.h>

#include "tests/support/rlhf/loss/two_rows.h"

namespace collimate::rlhf {
namespace {

double softplus(double x) { return std::log1p(std::exp(x)); }

// Samples of one token each with these log-ratios, rewards and prompts.
double value_of(const std::vector<float>& ratios, const std::vector<float>& rewards,
                const std::vector<int64_t>& prompts, const std::string& type = "online_dpo") {
  Batch rows;
  rows.set(batch::kReward, rewards);
  rows.set(batch::kPromptUid, prompts);
  rows.set_ragged(batch::kTrainable, std::vector<std::vector<uint8_t>>(ratios.size(), {0, 1}));
  rows.set_ragged(batch::kReferenceLogProbs, std::vector<std::vector<float>>(ratios.size(), {0.F, -5.F}));
  std::vector<float> log_probs;
  for (const float ratio : ratios) log_probs.push_back(ratio - 5.F);
  return value_alone(loss_with("rollouts", type), rows, {.log_probs = at::tensor(log_probs)},
                     {static_cast<double>(ratios.size()), static_cast<double>(ratios.size())});
}

TEST(OnlinePreference, IsTheMeanOverAPromptsOrderedPairsAndThenOverPrompts) {
  const double one = softplus(-0.1 * (2 - 1)), two = (softplus(-0.1) + softplus(0.2) + softplus(0.3)) / 3;
  EXPECT_NEAR(value_of({2, 1}, {1, 0}, {7, 7}), one, 1e-6);
  EXPECT_NEAR(value_of({2, 1, 0, -1, 2}, {1, 0, 3, 2, 1}, {7, 7, 9, 9, 9}), (one + two) / 2, 1e-6);
  EXPECT_NEAR(value_of({2, 1}, {1, 0}, {7, 7}, "online_ipo"), 16.0, 1e-5);
}

TEST(OnlinePreference, TiesAndRewardsThatAreNoNumbersMakeNoPair) {
  EXPECT_EQ(value_of({2, 1}, {1, 1}, {7, 7}), 0.0);
  EXPECT_EQ(value_of({2, 1}, {1, 0}, {7, 9}), 0.0);
  const double one = softplus(-0.1);
  EXPECT_NEAR(value_of({2, 1, 8}, {1, 0, std::nanf("")}, {7, 7, 7}), one, 1e-6);
  EXPECT_NEAR(value_of({2, 1, 8, 9}, {1, 0, 1, 1}, {7, 7, 9, 9}), one, 1e-6) << "a prompt of ties counts as none";
}

}  // namespace
}  // namespace collimate::rlhf
