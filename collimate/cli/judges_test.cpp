#include "collimate/cli/judges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/base/error_of.h"

namespace collimate::cli {
namespace {

using base::message_of;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Rewards, AreNamedAsInAConfig) {
  EXPECT_TRUE(rewards_of({}).is_null());
  const nlohmann::json list =
      rewards_of({"exact", "a.py", "dir/a.py:judge", "{rule: regex, pattern: '^4', weight: 2}", "http://h:1/score"});
  ASSERT_EQ(list.size(), 5U);
  EXPECT_EQ(list[0].at("rule"), "exact");
  EXPECT_EQ(list[0].at("weight"), 1.0) << "options that are left out are there";
  EXPECT_EQ(list[1].at("python"), "a.py");
  EXPECT_EQ(list[2].at("python"), "dir/a.py:judge");
  EXPECT_EQ(list[3].at("pattern"), "^4");
  EXPECT_EQ(list[3].at("weight"), 2.0);
  EXPECT_EQ(list[4].at("http"), "http://h:1/score");
}

TEST(Rewards, WrongOnesAreNamed) {
  EXPECT_THAT(message_of([] { rewards_of({"exakt"}); }), HasSubstr("[--reward] expected a rule, one of "));
  EXPECT_THAT(message_of([] { rewards_of({"{rule: exact, feild: x}"}); }), HasSubstr("got \"feild\"; try \"field\""));
  EXPECT_THAT(message_of([] { rewards_of({"{exact}, x"}); }), HasSubstr("[--reward"));
  EXPECT_THAT(message_of([] { rewards_of({"{gym: a.py}"}); }),
              HasSubstr("expected rewards of completions in one turn"));
}

TEST(Judges, ADroppedSampleHasNoReward) {
  Judges judges(rewards_of({"{rule: exact, on_error: drop}"}));
  std::vector<rlhf::RewardSample> samples(2);
  samples[0].completion = "4";
  samples[0].example = {{"ground_truth", "4"}};
  samples[1].example = nlohmann::json::object();
  EXPECT_THAT(judges.score(samples), ElementsAre(std::optional(1.0), std::nullopt));
  Judges strict(rewards_of({"exact"}));
  EXPECT_THAT(message_of<base::RunError>([&] { strict.score(samples); }),
              HasSubstr("or another rule, or on_error: drop, or a value, for it"));
}

}  // namespace
}  // namespace collimate::cli
