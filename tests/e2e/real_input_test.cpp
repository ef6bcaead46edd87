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

  Scratch scratch_{"real"};
};

TEST_F(RealInput, DigitCompletionFromRandomWeights) {
  run("arith");
  EXPECT_EQ(lines_of(scratch_ / "data/arith_held_out.jsonl").size(), 171U);
  const auto steps = metrics("verl-arith");
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_GE(steps.back().at("val/reward/mean").get<double>(), 0);
  EXPECT_EQ(steps.back().at("reward/errors"), 0);
  EXPECT_GT(steps.back().at("actor/grad_norm").get<double>(), 0);
}

TEST_F(RealInput, StoriesWithAPythonReward) {
  run("mentions");
  const auto steps = metrics("stories-reward");
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_GE(steps.back().at("actor/kl_loss").get<double>(), 0);
  EXPECT_GT(steps.back().at("response_length/mean").get<double>(), 0);
  EXPECT_EQ(steps.back().at("reward/errors"), 0);
}

TEST_F(RealInput, PairsRewardModelPpoAndDpo) {
  run("pairs");
  EXPECT_EQ(lines_of(scratch_ / "data/pairs_held_out.jsonl").size(), 16U);
  for (const char* name : {"stories-reward-model", "stories-ppo", "stories-dpo"})
    EXPECT_TRUE(metrics(name).back().contains("val/accuracy")) << name;
  EXPECT_TRUE(fs::exists(scratch_ / "stories-ppo/model/model.safetensors"));
  EXPECT_NE(metrics("stories-ppo").front().at("val/reward/mean"), metrics("stories-ppo").back().at("val/reward/mean"));
}

}  // namespace
}  // namespace collimate::test
