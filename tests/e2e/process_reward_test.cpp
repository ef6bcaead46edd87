// A process reward model is trained, and judges the completions of GRPO and PPO by their steps.
#include "tests/e2e/recipe_runs.h"

namespace collimate::test {
namespace {

class ProcessRewards : public RecipeRuns {
 public:
  ProcessRewards() : RecipeRuns("process-rewards") {}
};

TEST_F(ProcessRewards, StepsAreLearntAndMeasured) {
  const std::string steps = scratch_ / "steps.jsonl";
  const Metrics metrics = train("process_reward", {"train.learning_rate=1e-2", "data.eval=" + steps});
  expect_every_step_once(metrics, 0, 3);  // 0: measured ahead of the first update
  expect_loss_falls(Metrics(metrics.begin() + 1, metrics.end()));
  for (const char* name : {"steps/accuracy", "steps/right"}) {
    EXPECT_GE(number(metrics.back(), name), 0.0) << name;
    EXPECT_LE(number(metrics.back(), name), 1.0) << name;
  }
  EXPECT_GT(number(metrics.back(), "val/accuracy"), 0.0);
  EXPECT_GT(number(metrics.back(), "val/loss"), 0.0);
}

TEST_F(ProcessRewards, TheStepsOfACompletionAreItsReward) {
  train("process_reward", {"train.learning_rate=1e-2"});
  const std::string judge = "models.reward={path: " + output_ + "/model}";
  for (const char* recipe : {"grpo", "ppo"}) {
    const auto rewards = [&](const std::string& of) {
      const Metrics metrics =
          train(recipe, {judge, "reward=null", "algorithm.step_reward=" + of, "data.step_separator=\"=\""});
      expect_every_step_once(metrics, 1, 3);
      return std::pair(number(metrics.front(), "critic/rewards/min"), number(metrics.front(), "critic/rewards/max"));
    };
    const auto product = rewards("product"), least = rewards("min");
    for (const auto& [low, high] : {product, least}) {
      EXPECT_GE(low, 0.0) << recipe;
      EXPECT_LE(high, 1.0) << recipe;
      EXPECT_LT(low, high) << recipe;
    }
    EXPECT_LE(product.first, least.first) << recipe << ": no product of probabilities is above the least of them";
  }
}

}  // namespace
}  // namespace collimate::test
