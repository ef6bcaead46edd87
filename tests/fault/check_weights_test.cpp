// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/check_call.h"

namespace collimate::test {
namespace {

// These tests ask `collimate check` about weights: of the data's, and of those that a placement has samples drawn by.
class CheckWeights : public CheckCall {};

TEST_F(CheckWeights, EpochsAreOfTheRowsThatTheirWeightLetsIn) {
  for (const auto& [weight, end] : std::vector<std::pair<std::string, std::string>>{
           {"1", "0.6 epochs of 40\n"}, {"2", "0.3 epochs of 80\n"}, {"0.5", "1.2 epochs of 20\n"}}) {
    const auto result =
        check("sft", {"data.train={path: " + (root_ / "demonstrations.jsonl") + ", weight: " + weight + "}"});
    EXPECT_TRUE(result.status.ok()) << result.errors;
    EXPECT_THAT(result.output, testing::HasSubstr("\n# run: 3 iterations × 8 examples = 24, " + end));
  }
}

// The schedule can run generation ahead of training. After a resume the rest of such an iteration's samples would be of
// other weights: those that it began with are gone.
TEST_F(CheckWeights, APlacementWhoseSamplesAreOfOlderOnesIsRefused) {
  const std::string placement =
      "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {rollout: {devices: [0], models: [policy]}, "
      "training: {devices: [1], models: [policy_trainer]}}, staleness: ";
  const auto newest = check("grpo", {placement + "0}"}), older = check("grpo", {placement + "1}"});
  EXPECT_TRUE(newest.status.ok()) << newest.errors;
  EXPECT_EQ(older.status.code, 2) << older.output;
  EXPECT_THAT(older.errors,
              testing::HasSubstr("[placement.staleness] expected 0, got 1; try leaving it out: a recipe's samples are "
                                 "drawn by the newest weights, the only ones that a checkpoint has\n"));
}

}  // namespace
}  // namespace collimate::test
