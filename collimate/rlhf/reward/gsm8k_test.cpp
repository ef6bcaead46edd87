#include <gtest/gtest.h>

#include "collimate/base/error.h"
#include "tests/support/rlhf/reward/made_rule.h"

namespace collimate::rlhf {
namespace {

TEST(Rules, Gsm8kComparesTheFinalNumber) {
  const std::string truth = "She has 16 - 3 = 13 eggs. #### 1,018";
  EXPECT_EQ(value("gsm8k", {}, "so the answer is $1018.", truth), 1.0);
  EXPECT_EQ(value("gsm8k", {}, "#### 1018.0", truth), 1.0);
  EXPECT_EQ(value("gsm8k", {{"format_score", 0.1}}, "#### 17", truth), 0.1);
  EXPECT_EQ(value("gsm8k", {}, "no number", truth), 0.0);
  EXPECT_EQ(value("gsm8k", {}, "#### -3", "#### -3"), 1.0);
}

TEST(Rules, Gsm8kReadsAPointInFrontOfANumber) {
  for (const char* half : {"#### .5", "it is .5.", "####.50", "$.5", "(0.5)"}) {
    EXPECT_EQ(value("gsm8k", {}, "#### 0.5", half), 1.0) << half;
    EXPECT_EQ(value("gsm8k", {}, half, "#### .5"), 1.0) << half;
    EXPECT_EQ(value("gsm8k", {}, half, "5"), 0.0) << half;
  }
  EXPECT_EQ(value("gsm8k", {}, "#### -.5", "-0.5"), 1.0);
  for (const char* five : {"by eq.5", "so ...5"}) EXPECT_EQ(value("gsm8k", {}, five, "5"), 1.0) << five;
}

TEST(Rules, Gsm8kReadsASignInFrontOfACurrency) {
  for (const char* debt : {"#### -$1,018", "he has -$1018.", "-€1018", "(-£1018)", "$-1018"}) {
    EXPECT_EQ(value("gsm8k", {}, debt, "-1018"), 1.0) << debt;
    EXPECT_EQ(value("gsm8k", {}, debt, "1018"), 0.0) << debt;
  }
  EXPECT_EQ(value("gsm8k", {}, "between $3-$5", "5"), 1.0);
  EXPECT_EQ(value("gsm8k", {}, "-$.5", "-0.5"), 1.0);
  EXPECT_EQ(value("gsm8k", {}, "5-$", "5"), 1.0);
}

TEST(Rules, Gsm8kReadsTheFinalNumberAsAWhole) {
  for (const std::string& text :
       std::vector<std::string>{"1.2.3", "version 1.2.3", "#### 1.2.3", std::string(400, '9')}) {
    EXPECT_EQ(value("gsm8k", {{"format_score", 0.1}}, text, "1.2"), 0.0) << text;
    EXPECT_THROW(value("gsm8k", {}, "1.2", text), base::InputError) << text;
  }
  EXPECT_EQ(value("gsm8k", {}, "1.2.3, so 1.20", "1.2"), 1.0);
}

TEST(Rules, Gsm8kReadsOutTheNumberThatItJudges) {
  const auto answer = [](const std::string& completion) {
    return rule_named("gsm8k")({1, "", completion, {{"ground_truth", "18"}}}).answer;
  };
  EXPECT_EQ(answer("so it is 1,018.0"), answer("#### 1018")) << "equal numbers are equal answers";
  EXPECT_NE(answer("#### 17"), answer("#### 18"));
  EXPECT_EQ(answer("I do not know"), "") << "none is an answer of its own";
}

}  // namespace
}  // namespace collimate::rlhf
