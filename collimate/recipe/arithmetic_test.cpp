#include "collimate/recipe/arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collimate::recipe {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

// The greedy sample of each prompt is drawn, and no update has it.
TEST(Arithmetic, UpdatesShareTheRowsThatAreTrained) {
  Config config;
  config.train.samples_per_update = 5;
  config.train.learning_rate = 1e-6;
  config.run.iterations = 30;
  Plan plan;
  plan.rows_per_iteration = 12;
  plan.group_size = 3;
  plan.trained = "policy_trainer";
  plan.modules["policy_trainer"].parameters = nlohmann::json::object();
  const auto lines = [&] { return arithmetic_lines(batch_arithmetic(config, plan, 72, 4, 0), config); };
  EXPECT_THAT(lines(), Contains("updates: 12 rows ÷ 5 per update = 3 per iteration; × 30 iterations = 90 in all"));
  plan.greedy_baseline = true;
  EXPECT_THAT(lines(),
              AllOf(Contains("batch: 4 prompts × 3 samples = 12 rows per iteration"),
                    Contains("updates: 8 trained rows ÷ 5 per update = 2 per iteration; × 30 iterations = 60 in all"),
                    Contains(HasSubstr("the last update of each iteration has 3 of 5 rows; try a "
                                       "train.samples_per_update that divides 8"))));
  config.train.samples_per_update = 0;
  EXPECT_EQ(batch_arithmetic(config, plan, 72, 4, 0).rows_per_update, 8);
}

// 18 prompts in iterations of four: two are left at the end of each epoch.
TEST(Arithmetic, EpochsMayBeCut) {
  Config config;
  config.train.learning_rate = 1e-6;
  config.run.iterations = 30;
  Plan plan;
  plan.rows_per_iteration = 12;
  plan.group_size = 3;
  plan.trained = "policy_trainer";
  plan.modules["policy_trainer"].parameters = nlohmann::json::object();
  const auto lines = [&] { return arithmetic_lines(batch_arithmetic(config, plan, 18, 4, 0), config); };
  EXPECT_THAT(lines(), Contains("run: 30 iterations × 4 examples = 120, 6.67 epochs of 18"));
  config.data.last_batch = "drop";
  EXPECT_THAT(lines(), Contains("run: 30 iterations of 4 examples, 7.5 epochs of 18 in 4 iterations, and 2 of each "
                                "epoch are left out (data.last_batch: drop)"));
  config.data.last_batch = "retain";
  EXPECT_THAT(lines(), Contains("run: 30 iterations of 4 examples, 6 epochs of 18 in 5 iterations, of which the last "
                                "has 2 (data.last_batch: retain)"));
}

}  // namespace
}  // namespace collimate::recipe
