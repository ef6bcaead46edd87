#include "collimate/rlhf/reward/python_reward.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "collimate/base/error.h"

namespace collimate::rlhf {
namespace {

class PythonRewardTest : public testing::Test {
 protected:
  std::unique_ptr<Reward> reward(const std::string& source, const std::string& function = "score",
                                 double timeout = 5.0) {
    directory_ = std::filesystem::temp_directory_path() / fmt::format("collimate_reward_{}", getpid());
    std::filesystem::create_directories(directory_);
    std::ofstream(directory_ / "r.py") << source;
    PythonRewardOptions options;
    options.file = directory_ / "r.py";
    options.function = function;
    options.timeout_seconds = timeout;
    return python_reward(options);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::vector<RewardSample> samples_ = {{1, "p", "one", {{"ground_truth", 3}}},
                                        {2, "p", "four!", {{"ground_truth", 5}}}};
  std::filesystem::path directory_;
};

TEST_F(PythonRewardTest, TrlShapeGetsColumnsByName) {
  const auto results = reward(
                           "def score(prompts, completions, ground_truth, **kw):\n"
                           "    print('noise')\n"
                           "    return [float(len(c) == g) for c, g in zip(completions, ground_truth)]\n")
                           ->score(samples_);
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].value, 1.0);
  EXPECT_EQ(results[1].value, 1.0);
}

TEST_F(PythonRewardTest, WhetherACompletionWasCutOffIsAColumn) {
  samples_[1].finished = false;
  const auto results = reward(
                           "def score(prompts, completions, finished):\n"
                           "    return [float(f) for f in finished]\n")
                           ->score(samples_);
  EXPECT_EQ(results[0].value, 1.0);
  EXPECT_EQ(results[1].value, 0.0);
}

TEST_F(PythonRewardTest, VerlShapeIsRecognised) {
  const auto results = reward(
                           "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
                           "    return {'score': ground_truth / 2}\n",
                           "compute_score")
                           ->score(samples_);
  EXPECT_EQ(results[1].value, 2.5);
}

TEST_F(PythonRewardTest, StepsEndAtCharacters) {
  samples_[0].completion = "é!b";
  const auto results = reward(
                           "def score(prompts, completions, **kw):\n"
                           "    return [{'score': 1, 'steps': iter([(1, 0.25), (2, 0.5)])},\n"
                           "            {'score': 2, 'steps': [(99, 1)]}]\n")
                           ->score(samples_);
  ASSERT_EQ(results[0].steps.size(), 2U);
  EXPECT_EQ(results[0].steps[0].end, 2U);  // bytes
  EXPECT_EQ(results[0].steps[1].end, 3U);
  EXPECT_EQ(results[0].steps[1].value, 0.5);
  EXPECT_EQ(results[1].error, "step 0 ends at 99, expected 0 to 5");
}

TEST_F(PythonRewardTest, OnlyTheGuiltySampleFails) {
  const auto results = reward(
                           "def score(prompts, completions, **kw):\n"
                           "    return [1.0 / (3 - len(c)) if len(c) < 4 else 2.0 for c in completions]\n")
                           ->score(samples_);
  EXPECT_FALSE(results[0].value);
  EXPECT_EQ(results[0].error, "ZeroDivisionError: float division by zero");
  EXPECT_EQ(results[1].value, 2.0);
}

TEST_F(PythonRewardTest, NoneAndNanAreErrors) {
  const auto results =
      reward("def score(prompts, completions, **kw):\n    return [None, float('nan')]\n")->score(samples_);
  EXPECT_EQ(results[0].error, "the function returned None");
  EXPECT_EQ(results[1].error, "the function returned nan");
}

TEST_F(PythonRewardTest, AHangingSampleTimesOutAlone) {
  const auto results = reward(
                           "import time\n"
                           "def score(prompts, completions, **kw):\n"
                           "    if 'one' in completions: time.sleep(1000)\n"
                           "    return [7.0] * len(completions)\n",
                           "score", 0.4)
                           ->score(samples_);
  EXPECT_TRUE(results[0].error.starts_with("no reward within 0.4 s")) << results[0].error;
  EXPECT_EQ(results[1].value, 7.0);
}

TEST_F(PythonRewardTest, ImportErrorsNameTheFileAndPythonsReason) {
  try {
    reward("import no_such_package\n");
    FAIL();
  } catch (const base::InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              fmt::format("[reward.python] expected {}/r.py to define score, got ModuleNotFoundError: No module named "
                          "'no_such_package'",
                          directory_.string()));
  }
  EXPECT_THROW(reward("def other(): pass\n"), base::InputError);
}

}  // namespace
}  // namespace collimate::rlhf
