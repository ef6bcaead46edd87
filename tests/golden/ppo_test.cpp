// The estimator of the KL in PPO's rewards: that of the product, in both shapes of golden.
#include <gtest/gtest.h>

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
  EXPECT_EQ(replay("k2").at(2).verdict, Verdict::kUnknown);
  EXPECT_EQ(replay("k2").at(1).verdict, Verdict::kWithin);
}

}  // namespace
}  // namespace collimate::golden
