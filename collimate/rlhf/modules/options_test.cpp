#include "collimate/rlhf/modules/options.h"

#include <gtest/gtest.h>

#include "collimate/base/config.h"

namespace collimate::rlhf {
namespace {

TEST(MicroBatchTokens, AreMoreWhereSamplesShareTheirPrompts) {
  const TrainOptions unset;
  EXPECT_EQ(micro_batch_tokens(unset, "rollouts"), 2048);
  EXPECT_EQ(micro_batch_tokens(unset, "values"), 2048);
  EXPECT_EQ(micro_batch_tokens(unset), 2048);
  EXPECT_EQ(micro_batch_tokens(unset, "completions"), 1024);
  EXPECT_EQ(micro_batch_tokens(unset, "pairs"), 1024);
  EXPECT_EQ(micro_batch_tokens(unset, "reward_pairs"), 1024);
}

TEST(MicroBatchTokens, AreThoseOfTheConfigWhereItNamesThem) {
  TrainOptions named;
  base::apply(nlohmann::json{{"micro_batch_tokens", 30}}, "train", named);
  for (const char* rows : {"rollouts", "completions", ""}) EXPECT_EQ(micro_batch_tokens(named, rows), 30);
}

}  // namespace
}  // namespace collimate::rlhf
