#include <gtest/gtest.h>

#include "tests/e2e/run_support.h"

// Whole runs whose generation keeps keys and values in one byte.
namespace collimate::test {
namespace {

class RoundedCache : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { write_small_task(scratch_.path()); }

  Metrics run(const std::string& recipe, const std::string& name, const std::vector<std::string>& sets = {}) {
    train_text(small_config(recipe, scratch_.path()), scratch_ / name, sets);
    return metrics_of(scratch_ / name);
  }

  Scratch scratch_{"rounded-cache"};
};

// The log-probs that training corrects with are those of the weights without rounding, to the bit; what rounding
// changed is told beside them.
TEST_P(RoundedCache, SamplesGetTheirLogProbsAgain) {
  const std::string cache = std::string("rollout.kv_cache_dtype=") + GetParam();
  for (const char* recipe : {"grpo", "ppo"}) {
    const Metrics metrics = run(recipe, recipe, {cache, "train.samples_per_update=8"});
    ASSERT_EQ(metrics.size(), 3U);
    for (const nlohmann::json& line : metrics) {
      EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0) << recipe;
      EXPECT_GT(line.at("mismatch/tokens_compared").get<double>() + line.at("mismatch/tokens_checked").get<double>(),
                0);
      EXPECT_GT(line.at("rollout/rounding_logprob_abs_max").get<double>(), 0.0) << recipe;
      EXPECT_LT(line.at("rollout/rounding_logprob_abs_mean").get<double>(), 0.05) << recipe;
      EXPECT_GT(line.at("timing_s/old_log_prob").get<double>(), 0.0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, RoundedCache, testing::Values("int8", "fp8"));

}  // namespace
}  // namespace collimate::test
