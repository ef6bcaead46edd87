#include <gtest/gtest.h>

#include "tests/support/rlhf/reward/made_rule.h"

namespace collimate::rlhf {
namespace {

TEST(Rules, RegexFindsAPattern) { EXPECT_EQ(value("regex", {{"pattern", "a+b"}}, "xaab", ""), 1.0); }

TEST(Rules, RegexReadsALongCompletion) {
  const nlohmann::json thought = {{"pattern", "<think>(.|x)*<.think>"}};
  EXPECT_EQ(value("regex", thought, "<think>" + std::string(12'000, 'y') + "</think>", ""), 1.0);
  EXPECT_EQ(value("regex", thought, "<think>" + std::string(12'000, 'y'), ""), 0.0);
  const nlohmann::json lazy = {{"pattern", "<think>.*?</think>$"}};
  EXPECT_EQ(value("regex", lazy, "<think>" + std::string(1'000'000, 'y') + "</think>", ""), 1.0);
  // The pattern is read as Perl reads it: a name, what lies ahead, characters of several bytes; broken bytes are
  // U+FFFD.
  EXPECT_EQ(value("regex", {{"pattern", "^(?<first>.)(?=é)"}}, "äé", ""), 1.0);
  EXPECT_EQ(value("regex", {{"pattern", "^.$"}}, "\xff", ""), 1.0);
}

TEST(Rules, RegexThatGivesUpIsAnErrorOfTheSample) {
  const auto rewards = make_rewards({{{"rule", "regex"}, {"pattern", "<think>(.|x)*<.think>"}, {"on_error", -1}}});
  const std::string text = "<think>" + std::string(1'000'000, 'y') + "</think>";
  const ScoredSamples scored = score_samples(rewards, {{1, "", text, {}}, {2, "", "<think></think>", {}}});
  EXPECT_EQ(scored.rewards, (std::vector<float>{-1, 1}));
  EXPECT_EQ(scored.errors, 1);
  EXPECT_TRUE(scored.first_error.starts_with(
      "[reward regex] [regex] '<think>(.|x)*<.think>' gave up on a text of 1000015 bytes: "))
      << scored.first_error;
}

}  // namespace
}  // namespace collimate::rlhf
