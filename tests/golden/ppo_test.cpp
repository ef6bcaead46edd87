// The estimator of the KL in PPO's rewards: that of the product, in both shapes of golden.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/golden/changed.h"

namespace collimate::golden {
namespace {

TEST(PpoGoldens, RewardsHaveTheEstimatorOfTheFile) {
  json golden = read_small("ppo_e2e_tiny");
  json& update = golden["updates"][0];
  update["ref_logprobs"][0][0] = update["logprobs"][0][0].get<double>() - 0.5;
  golden["hyper"]["kl_coef"] = 0.05;
  EXPECT_NEAR(ours_at(golden, "/updates/0/rewards/0/0"), -0.05 * 0.5, 1e-6);
  golden["hyper"]["kl_estimator"] = "k3";
  EXPECT_NEAR(ours_at(golden, "/updates/0/rewards/0/0"), -0.05 * (std::exp(-0.5) - 0.5), 1e-6);
}

TEST(PpoGoldens, AnEstimatorOfTheFixedArraysIsReadOrRefused) {
  const auto replay = [](const json& estimator) {
    return replay_changed("ppo_arrays_tiny", [&](json& golden) { golden["cases"][2]["kl_estimator"] = estimator; });
  };
  EXPECT_EQ(replay("k3").at(2).verdict, Verdict::kWithin) << line_of(replay("k3").at(2));
  EXPECT_EQ(replay("k1").at(2).verdict, Verdict::kOutside);
  EXPECT_EQ(replay("k2").at(2).verdict, Verdict::kOutside);
  EXPECT_EQ(replay("k4").at(2).verdict, Verdict::kUnknown);
  EXPECT_EQ(replay("k4").at(1).verdict, Verdict::kWithin);
}

// TRL clips so: the loss is the larger error of the new and the old value.
TEST(PpoGoldens, AClipOfZeroKeepsTheOldValue) {
  const auto replay = [](double factor) {
    return replay_changed("ppo_arrays_tiny", [factor](json& golden) {
      const json& in = golden["inputs"];
      json& recorded = golden["cases"][0];
      double sum = 0, clipped = 0, count = 0;
      for (size_t r = 0; r < in["mask"].size(); ++r)
        for (size_t t = 0; t < in["mask"][r].size(); ++t) {
          if (!in["mask"][r][t].get<bool>()) continue;
          const double goal = recorded["returns"][r][t];
          const double free = std::pow(in["new_values"][r][t].get<double>() - goal, 2);
          const double old = std::pow(in["values"][r][t].get<double>() - goal, 2);
          sum += std::max(free, old), clipped += old > free ? 1 : 0, count += 1;
        }
      recorded["cliprange_value"] = 0;
      recorded["vf_loss"] = factor * sum / count / 2;
      recorded["vf_clipfrac"] = clipped / count;
    });
  };
  EXPECT_EQ(replay(1.0).at(0).verdict, Verdict::kWithin) << line_of(replay(1.0).at(0));
  EXPECT_EQ(replay(1.001).at(0).verdict, Verdict::kOutside);
}

TEST(PpoGoldens, AChangedRewardOfTheFixedArraysIsOutside) {
  const auto outcomes = replay_changed("ppo_arrays_tiny", [](json& golden) {
    json& reward = golden["cases"][1]["rewards"][0][4];
    reward = reward.get<double>() + 1e-3;
    golden["cases"][2]["rewards"][1][3] = 5.0;  // outside the mask
    golden["cases"][0].erase("rewards");
  });
  EXPECT_EQ(outcomes.at(0).verdict, Verdict::kWithin) << line_of(outcomes[0]);
  EXPECT_EQ(outcomes.at(1).verdict, Verdict::kOutside);
  EXPECT_NE(outcomes[1].text.find("rewards[4]"), std::string::npos) << outcomes[1].text;
  EXPECT_EQ(outcomes.at(2).verdict, Verdict::kWithin) << line_of(outcomes[2]);
}

}  // namespace
}  // namespace collimate::golden
