#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "tests/support/rlhf/reward/made_rule.h"

namespace collimate::rlhf {
namespace {

TEST(Rules, DigitSequenceComputesTheProgressionFromThePrompt) {
  const Rule rule = rule_named("digit_sequence");
  const auto reward = [&](const char* prompt, const char* completion, bool finished = true) {
    return rule({1, prompt, completion, {}, finished}).value;
  };
  EXPECT_DOUBLE_EQ(reward("4,6:9,3", "8,1,3"), 1.0);
  EXPECT_DOUBLE_EQ(reward("6,4:9,3", "2,0,7"), 1.0);  // falls below 0
  EXPECT_DOUBLE_EQ(reward("4,6:9,3", "8,1,3", false), 0.9);
  EXPECT_DOUBLE_EQ(reward("4,6:9,3", "8,1"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(reward("4,6:9,3", "8,1,3,5"), 0.75);
  EXPECT_DOUBLE_EQ(reward("4,6:9,3", "8,1,3,"), 0.75);  // an empty fourth
  EXPECT_DOUBLE_EQ(reward("4,6:9,3", "8,,3"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(reward("4,6:9,0", ""), 1.0);
  EXPECT_DOUBLE_EQ(reward("4,6:9,0", "8"), 0.0);
  EXPECT_DOUBLE_EQ(reward("-1152921504606846976,1152921504606846976:1152921504606846976,1", "0"), 1.0);
  for (const char* bad : {"", "4:9,3", "4:9,3,1", "4,6:0,3", "4,6,9,3", "4,6:9,3,1", "4,x:9,3",
                          "-9223372036854775808,9223372036854775807:9,1", "1,1152921504606846977:9,1"})
    EXPECT_THROW(reward(bad, "8"), base::InputError) << bad;
}

TEST(Rules, StepsOfADigitSequenceAddWhatEachNumberChanges) {
  const Rule rule = rule_named("digit_sequence");
  const auto steps = [&](const char* prompt, const std::string& completion) {
    std::vector<std::pair<size_t, double>> out;
    for (const StepReward& step : rule({1, prompt, completion, {}, true}).steps) out.emplace_back(step.end, step.value);
    return out;
  };
  using Steps = std::vector<std::pair<size_t, double>>;
  EXPECT_EQ(steps("4,6:9,2", "8,1"), (Steps{{1, 0.5}, {3, 0.5}}));
  EXPECT_EQ(steps("4,6:9,2", "8,4"), (Steps{{1, 0.5}, {3, 0}}));
  EXPECT_EQ(steps("4,6:9,1", "8,1"), (Steps{{1, 1}, {3, -0.5}}));  // one too many halves it
  EXPECT_EQ(steps("4,6:9,1", "8,"), (Steps{{1, 1}, {2, -0.5}}));
  EXPECT_EQ(steps("4,6:9,0", ""), (Steps{}));
  EXPECT_EQ(steps("4,6:9,0", "8"), (Steps{{1, 0}}));
}

}  // namespace
}  // namespace collimate::rlhf
