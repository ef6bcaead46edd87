#include "collimate/rlhf/reward/gym.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "collimate/base/error.h"
#include "collimate/rlhf/reward/gym_reward.h"
#include "tests/support/base/error_of.h"

namespace collimate::rlhf {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Adds up the numbers of its sample's turns until the sum is the row's target.
constexpr const char* kSums = R"(
import os, time
class Sum:
    def __init__(self, prompt, target, **columns):
        self.prompt, self.target, self.sum = prompt, target, 0
    def step(self, completion):
        if completion == "hang": time.sleep(60)
        if completion == "die": os._exit(3)
        self.sum += int(completion)
        if self.sum == self.target: return {"reward": 1.0, "done": True, "observation": "unread"}
        return {"observation": f"{self.prompt}{self.sum}", "reward": -0.5}
class Gymnasium(Sum):
    def step(self, completion):
        return str(completion), 2, False, completion == "end", {"info": 1}
class Words:
    def __init__(self, prompt): pass
    def step(self, completion): return None if completion == "end" else completion + "?"
class Wrong:
    def __init__(self, prompt): pass
    def step(self, completion):
        return {"tuple": (1, 2), "key": {"obs": "x"}, "number": {"observation": 3}, "nan": {"reward": float("nan")}}[completion]
class Stepless:
    pass
class Reset(Words):
    def reset(self): return "p", {}
    async def step(self, completion): return None
class Counted:
    alive = 0
    def __init__(self, prompt): Counted.alive += 1
    def step(self, completion): return str(Counted.alive)
    def close(self):
        Counted.alive -= 1
        raise RuntimeError("in close")
)";

class GymTest : public testing::Test {
 protected:
  GymSection section(const std::string& name, double timeout = 10.0) {
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ / "env.py") << kSums;
    GymSection options;
    options.gym = fmt::format("{}:{}", (directory_ / "env.py").string(), name);
    options.timeout_seconds = timeout;
    return options;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::map<int64_t, GymReply> replies(Gym& gym) {
    std::map<int64_t, GymReply> all;
    while (gym.pending() > 0)
      for (GymReply& reply : gym.take(0.1)) all[reply.episode] = std::move(reply);
    return all;
  }
  static GymReply reply_to(Gym& gym, GymTurn turn) {
    gym.step(std::move(turn));
    return replies(gym).begin()->second;
  }
  static GymTurn first(int64_t uid, const std::string& completion, const json& example = {{"target", 5}}) {
    return {.episode = uid, .completion = completion, .first = true, .prompt = "p", .example = example};
  }

  std::filesystem::path directory_ = std::filesystem::temp_directory_path() / fmt::format("collimate_gym_{}", getpid());
};

TEST_F(GymTest, EachSampleHasAnEnvironmentOfItsOwn) {
  GymSection options = section("Sum");
  options.workers = 2;
  Gym gym(options);
  for (int64_t uid = 0; uid < 5; ++uid) gym.step(first(uid, std::to_string(uid), {{"target", 2 * uid}, {"other", 1}}));
  for (auto& [uid, reply] : replies(gym)) {
    EXPECT_EQ(reply.error, "");
    EXPECT_EQ(reply.done, uid == 0);  // whose sum is its target at once
    if (uid == 0) continue;
    EXPECT_EQ(reply.observation, fmt::format("p{}", uid));
    EXPECT_EQ(reply.reward, -0.5);
    gym.step({.episode = uid, .completion = std::to_string(uid)});
  }
  for (const auto& [uid, reply] : replies(gym)) {
    EXPECT_TRUE(reply.done) << uid;
    EXPECT_EQ(reply.reward, 1.0);
    EXPECT_EQ(reply.observation, std::nullopt);
  }
}

TEST_F(GymTest, StepsGiveOneOfThreeForms) {
  Gym gymnasium(section("Gymnasium")), words(section("Words"));
  const GymReply more = reply_to(gymnasium, first(1, "x"));
  EXPECT_EQ(more.observation, "x");
  EXPECT_EQ(more.reward, 2.0);
  EXPECT_FALSE(more.done);
  EXPECT_TRUE(reply_to(gymnasium, {.episode = 1, .completion = "end"}).done);
  EXPECT_EQ(reply_to(words, first(1, "x")).observation, "x?");
  const GymReply last = reply_to(words, {.episode = 1, .completion = "end"});
  EXPECT_TRUE(last.done);
  EXPECT_EQ(last.reward, 0.0);
}

TEST_F(GymTest, AFailedStepNamesWhatIsWrong) {
  Gym sums(section("Sum")), wrong(section("Wrong"));
  const GymReply raised = reply_to(sums, first(1, "five"));
  EXPECT_THAT(raised.error, HasSubstr("ValueError: invalid literal for int()"));
  EXPECT_THAT(raised.trace, HasSubstr("env.py\", line "));
  EXPECT_THAT(raised.trace, testing::Not(HasSubstr("gym_worker")));
  EXPECT_THAT(reply_to(sums, first(2, "5", {{"other", 1}})).error,
              HasSubstr("cannot be made with prompt and the data's columns: missing a required argument: 'target'"));
  EXPECT_THAT(reply_to(wrong, first(1, "tuple")).error, HasSubstr("a tuple of 2, expected observation, reward"));
  EXPECT_THAT(reply_to(wrong, first(2, "key")).error, HasSubstr("the key 'obs', expected some of observation, "));
  EXPECT_THAT(reply_to(wrong, first(3, "number")).error, HasSubstr("the observation 3, expected a text"));
  EXPECT_THAT(reply_to(wrong, first(4, "nan")).error, HasSubstr("the reward nan"));
}

TEST_F(GymTest, AProcessThatHangsOrDiesFailsItsSamplesAlone) {
  Gym gym(section("Sum", 0.5));
  for (const std::string end : {"hang", "die"}) {
    EXPECT_EQ(reply_to(gym, first(1, "1")).observation, "p1");
    EXPECT_THAT(reply_to(gym, first(2, end)).error, HasSubstr(end == "hang" ? "no answer within" : "exit code 3"));
    EXPECT_EQ(reply_to(gym, {.episode = 1, .completion = "1"}).error,
              "the process with this sample's environment ended at another sample's step");
    EXPECT_EQ(reply_to(gym, first(3, "1")).observation, "p1");  // a new process
  }
}

TEST_F(GymTest, ForgottenEnvironmentsEnd) {
  Gym gym(section("Counted"));
  EXPECT_EQ(reply_to(gym, first(1, "x", {})).observation, "1");
  EXPECT_EQ(reply_to(gym, first(2, "x", {})).observation, "2");
  gym.forget({1, 2});
  const GymReply next = reply_to(gym, first(3, "x", {}));
  EXPECT_EQ(next.error, "") << "what close() raises is no other sample's failure";
  EXPECT_EQ(next.observation, "1");
  gym.step(first(4, "x", {}));
  gym.forget({4});  // perhaps before its step begins
  replies(gym);
  EXPECT_EQ(gym.pending(), 0);
}

TEST_F(GymTest, ItEndsWhileAStepGoesOn) {
  Gym gym(section("Sum", 60.0));
  gym.step(first(1, "hang"));
  EXPECT_TRUE(gym.take(0.05).empty());
}

TEST_F(GymTest, AFileWithoutTheClassIsRefused) {
  EXPECT_THAT(base::message_of<base::InputError>([&] { Gym gym(section("Environment")); }),
              HasSubstr("env.py to define Environment, got no class Environment; it defines "));
  EXPECT_THAT(base::message_of<base::InputError>([&] { Gym gym(section("Stepless")); }),
              HasSubstr("got Stepless without a method step; try def step(self, completion)"));
  const GymSection broken = section("Sum");
  std::ofstream(directory_ / "env.py") << "x = 1\nclass Sum(:\n";
  EXPECT_THAT(base::message_of<base::InputError>([&] { Gym gym(broken); }),
              testing::AllOf(HasSubstr("got SyntaxError: "), HasSubstr("env.py\", line 2\n")));
}

TEST_F(GymTest, TheOnlyClassOfAFileIsProposed) {
  const GymSection options = section("Game");
  std::ofstream(directory_ / "env.py") << "from json import dumps\nclass Other:\n    pass\nGame = 3\n";
  EXPECT_THAT(base::message_of<base::InputError>([&] { Gym gym(options); }), HasSubstr("got Game, which is no class"));
  GymSection unnamed = options;
  unnamed.gym = (directory_ / "env.py").string();
  EXPECT_THAT(
      base::message_of<base::InputError>([&] { Gym gym(unnamed); }),
      testing::EndsWith("got no class Environment; it defines dumps, Other; try " + unnamed.gym.get() + ":Other"));
}

TEST_F(GymTest, AClassForGymnasiumIsKnownByItsReset) {
  Gym gym(section("Reset")), words(section("Words"));
  EXPECT_TRUE(gym.has_reset());
  EXPECT_FALSE(words.has_reset());
  EXPECT_THAT(reply_to(gym, first(1, "x", {})).error, HasSubstr("a coroutine, which nothing awaits; try def step"));
}

TEST_F(GymTest, TheRewardIsThatOfTheEpisodeOrOfATrialOfOneStep) {
  const auto reward = gym_reward(section("Sum"));
  std::vector<RewardSample> samples(5);
  samples[0].episode = {{"turns", 3}, {"reward", 1.5}};
  samples[1].episode = {{"turns", 1}, {"error", "it broke"}};
  samples[2].completion = "5";
  samples[3].completion = "five";
  samples[4].prompt = "p";
  samples[4].completion = "4";
  for (size_t i = 2; i < 5; ++i) samples[i].example = {{"target", 5}};
  const std::vector<RewardResult> results = reward->score(samples);
  EXPECT_EQ(results[0].value, 1.5);
  EXPECT_EQ(results[1].error, "it broke");
  EXPECT_EQ(results[2].value, 1.0);
  EXPECT_EQ(results[2].note, " and ends");
  EXPECT_EQ(results[4].value, -0.5);
  EXPECT_EQ(results[4].note, " and reads \"p4\"");
  EXPECT_THAT(results[3].error, HasSubstr("ValueError"));
}

}  // namespace
}  // namespace collimate::rlhf
