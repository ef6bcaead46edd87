#include "collimate/rlhf/modules/step_reward.h"

#include <gtest/gtest.h>

#include "tests/support/rlhf/prompt/letter_tokenizer.h"

namespace collimate::rlhf {
namespace {

// Letters from a on are the ids from 2 on, behind <pad> and <eos>; a step ends with "zy", which are 27 and 26.
class CompletionSteps : public testing::Test {
 protected:
  StepsOfCompletion steps(const std::string& completion, bool ended = true, int64_t longest = 0) const {
    std::vector<int32_t> ids = tokenizer_.encode("ab" + completion);
    if (ended) ids.push_back(1);
    return steps_of_completion(ids, 2, tokenizer_, {.separator = "zy", .longest_tokens = longest});
  }

  const text::CharacterTokenizer tokenizer_ = letter_tokenizer();
};

TEST_F(CompletionSteps, EndWhereTheirSeparatorEnds) {
  const StepsOfCompletion two = steps("czydzy");
  EXPECT_EQ(two.ids, tokenizer_.encode("abczydzy")) << "without what ended the completion";
  EXPECT_EQ(two.ends, (std::vector<uint8_t>{0, 0, 0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(steps("czyzyd", false).ends, (std::vector<uint8_t>{0, 0, 0, 0, 1, 0, 0, 0, 0, 1}))
      << "nothing between two separators is no step";
}

TEST_F(CompletionSteps, ALastStepGetsItsSeparator) {
  EXPECT_EQ(steps("czyd").ids, tokenizer_.encode("abczydzy"));
  EXPECT_EQ(steps("czyd").ends, (std::vector<uint8_t>{0, 0, 0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(steps("czyd", true, 7).ids, tokenizer_.encode("abczyd")) << "no room for it";
  EXPECT_EQ(steps("czyd", true, 7).ends, (std::vector<uint8_t>{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(steps("").ids, tokenizer_.encode("abzy")) << "nothing said is one step";
  EXPECT_EQ(steps("").ends, (std::vector<uint8_t>{0, 0, 0, 1}));
}

TEST(StepRewards, AreANumberOfTheStepsProbabilities) {
  const std::vector<double> steps = {0.5, 0.2, 0.8};
  EXPECT_EQ(reward_of_steps({.of = "last"}, steps), 0.8);
  EXPECT_EQ(reward_of_steps({.of = "min"}, steps), 0.2);
  EXPECT_NEAR(reward_of_steps({.of = "mean"}, steps), 0.5, 1e-12);
  EXPECT_NEAR(reward_of_steps({.of = "product"}, steps), 0.08, 1e-12);
  for (const char* of : {"last", "min", "mean", "product"}) EXPECT_EQ(reward_of_steps({.of = of}, {0.3}), 0.3) << of;
}

}  // namespace
}  // namespace collimate::rlhf
