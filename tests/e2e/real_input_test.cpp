#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/support/shared_data.h"
#include "tests/support/small_task.h"

// bench/real/run.sh --reduced: the command line on the models and prompts that people use, one part a test.
namespace collimate::test {
namespace {

class RealInput : public testing::Test {
 protected:
  void SetUp() override {
    if (shared_path("data/models").empty()) GTEST_SKIP() << "no shared test data: set COLLIMATE_SHARED";
  }

  // The part's output is shown when it fails.
  void run(const std::string& part) {
    const std::string log = scratch_ / "log";
    const std::string command =
        fmt::format("COLLIMATE='{}/collimate' COLLIMATE_RUNS='{}' '{}/bench/real/run.sh' --reduced {} > '{}' 2>&1",
                    COLLIMATE_BIN_DIR, scratch_.path().string(), COLLIMATE_SOURCE_DIR, part, log);
    ASSERT_EQ(std::system(command.c_str()), 0) << read_text(log);
  }

  // Every line of a run's metrics.
  std::vector<nlohmann::json> metrics(const std::string& name) {
    std::vector<nlohmann::json> out;
    for (const std::string& line : lines_of(scratch_ / (name + "/metrics.jsonl")))
      out.push_back(nlohmann::json::parse(line));
    return out;
  }

  // Reads the completions of a file of samples, in its order.
  std::vector<std::string> completions(const std::string& file) {
    std::vector<std::string> out;
    for (const std::string& line : lines_of(scratch_ / file))
      out.push_back(nlohmann::json::parse(line).at("completion"));
    return out;
  }

  // The decoder reported what training recomputed, in every iteration of a run.
  void expect_no_mismatch(const std::string& name) {
    for (const nlohmann::json& line : metrics(name)) {
      if (line.at("step") == 0) continue;  // an evaluation
      EXPECT_EQ(line.at("mismatch/logprob_abs_max").get<double>(), 0.0) << name << line.at("step");
      EXPECT_GT(line.at("mismatch/tokens_compared").get<double>(), 0.0) << name << line.at("step");
    }
  }

  Scratch scratch_{"real"};
};

TEST_F(RealInput, DigitCompletionFromRandomWeights) {
  run("arith");
  EXPECT_EQ(lines_of(scratch_ / "data/arith_held_out.jsonl").size(), 171U);
  const auto steps = metrics("verl-arith");
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_EQ(steps.back().at("reward/errors"), 0);
  EXPECT_GT(steps.back().at("actor/grad_norm").get<double>(), 0);
  expect_no_mismatch("verl-arith");
  EXPECT_NE(completions("verl-arith/samples/eval-000003.jsonl"), completions("verl-arith/samples/eval-000000.jsonl"))
      << "the trained policy answers held-out prompts as the random one did";
}

TEST_F(RealInput, StoriesWithAPythonReward) {
  run("mentions");
  const auto steps = metrics("stories-reward");
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[1].at("actor/kl_loss").get<double>(), 0.0) << "the policy is the reference still";
  EXPECT_GT(steps[2].at("actor/kl_loss").get<double>(), 0.0) << "after the first update";
  expect_no_mismatch("stories-reward");
  EXPECT_GT(steps.back().at("response_length/mean").get<double>(), 0);
  EXPECT_EQ(steps.back().at("reward/errors"), 0);
}

TEST_F(RealInput, PairsRewardModelPpoDpoAndKto) {
  run("pairs");
  EXPECT_EQ(lines_of(scratch_ / "data/pairs_held_out.jsonl").size(), 16U);
  for (const char* name : {"stories-reward-model", "stories-dpo", "stories-kto"}) {
    const auto steps = metrics(name);
    const bool scores = name == std::string("stories-reward-model");
    const char* accuracy = scores ? "val/accuracy" : "val/rewards/accuracies";
    EXPECT_EQ(steps.front().at(accuracy).get<double>(), 0.5) << name << ": nothing is preferred at the start";
    EXPECT_GT(steps.back().at(accuracy).get<double>(), 0.5) << name;
    EXPECT_LT(steps.back().at("actor/loss").get<double>(), steps[1].at("actor/loss").get<double>()) << name;
  }
  const auto ppo = metrics("stories-ppo");
  ASSERT_EQ(ppo.size(), 3U);
  expect_no_mismatch("stories-ppo");
  EXPECT_EQ(ppo[1].at("actor/reward_kl_penalty").get<double>(), 0.0) << "the policy is the reference still";
  EXPECT_NE(ppo[2].at("actor/reward_kl_penalty").get<double>(), 0.0) << "after the first update";
  EXPECT_TRUE(fs::exists(scratch_ / "stories-ppo/model/model.safetensors"));
  EXPECT_NE(ppo.front().at("val/reward/mean"), ppo.back().at("val/reward/mean"));
}

}  // namespace
}  // namespace collimate::test
