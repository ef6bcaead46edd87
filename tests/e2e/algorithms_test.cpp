// Losses, advantages and ways to shape rewards, each in a run of its recipe.
#include <gtest/gtest.h>

#include <algorithm>

#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"
#include "tests/e2e/recipe_runs.h"

namespace collimate::test {
namespace {

class Algorithms : public RecipeRuns {
 public:
  Algorithms() : RecipeRuns("algorithms") {}
};

// The desirable answers are sorted, the undesirable ones reversed: held-out ones of both marks tell them apart.
TEST_F(Algorithms, KtoLearnsFromMarkedAnswers) {
  for (const char* loss : {"kto", "apo_zero_unpaired"}) {
    const Metrics metrics =
        train("kto", {"train.learning_rate=1e-2", "run.iterations=20", "train.samples_per_update=16",
                      "data.val_size=12", std::string("algorithm.loss_type=") + loss});
    EXPECT_NEAR(number(metrics[1], "actor/loss"), 0.5, 1e-5) << "policy and reference are equal still";
    EXPECT_EQ(number(metrics.front(), "val/rewards/accuracies"), 0.5) << loss;
    EXPECT_GT(number(metrics.back(), "val/rewards/accuracies"), 0.7) << loss;
    EXPECT_GT(number(metrics.back(), "val/rewards/margins"), 0.0) << loss;
  }
}

// Where all answers are desirable, answers to other prompts become more likely too.
TEST_F(Algorithms, KtoEstimatesItsKlFromAnswersToOtherPrompts) {
  std::string desirable;
  for (std::string line : lines_of(scratch_ / "demonstrations.jsonl"))
    desirable += line.substr(0, line.rfind('}')) + ", \"label\": true}\n";
  write_text(scratch_ / "desirable.jsonl", desirable);
  const Metrics metrics =
      train("kto", {"train.learning_rate=1e-2", "run.iterations=8", "data.train=" + (scratch_ / "desirable.jsonl")});
  EXPECT_EQ(number(metrics.front(), "actor/kl_estimate"), 0.0);
  double largest = 0;
  for (const nlohmann::json& line : metrics) largest = std::max(largest, number(line, "actor/kl_estimate"));
  EXPECT_GT(largest, 0.0);
  EXPECT_FALSE(train("kto", {"algorithm.loss_type=apo_zero_unpaired"}).back().contains("actor/kl_estimate"));
}

// Held-out completions that begin with a digit up to 4 become more frequent, by every advantage and loss of the lists.
class Learning : public Algorithms {
 protected:
  void expect_learns(const std::string& set) {
    const Metrics metrics =
        train("grpo", {set, "train.learning_rate=1e-2", "run.iterations=12", "evaluation.temperature=1",
                       "evaluation.samples_per_prompt=8", "data.eval=" + (scratch_ / "held_out.jsonl")});
    expect_every_step_once(metrics, 0, 12);
    EXPECT_GT(number(metrics.back(), "val/reward/mean"), number(metrics.front(), "val/reward/mean") + 0.15) << set;
    for (size_t i = 1; i < metrics.size(); ++i) EXPECT_EQ(number(metrics[i], "mismatch/logprob_abs_max"), 0.0) << set;
  }
};

TEST_F(Learning, ByEveryAdvantage) {
  for (const rlhf::AdvantageEntry& entry : rlhf::advantages())
    if (entry.rows == "groups" && entry.name != "distillation") expect_learns("algorithm.advantage=" + entry.name);
  expect_learns("algorithm.kl_coefficient=0.02");
}

// The teacher has learnt by rewards, which the student does not read: it comes to the teacher's held-out reward, on
// two devices too.
TEST_F(Learning, FromATeacher) {
  const std::vector<std::string> common = {
      "train.learning_rate=1e-2",        "run.iterations=16",
      "run.evaluate_every=16",           "evaluation.temperature=1",
      "evaluation.samples_per_prompt=8", "data.eval=" + (scratch_ / "held_out.jsonl")};
  const Metrics taught = train("grpo", common);
  const double before = number(taught.front(), "val/reward/mean"), teachers = number(taught.back(), "val/reward/mean");
  std::vector<std::string> sets = {"algorithm.advantage=distillation", "models.reference.path=" + output_ + "/model",
                                   "rollout.samples_per_prompt=1", "rollout.prompts_per_iteration=16",
                                   "algorithm.shuffle_rewards=true"};
  sets.insert(sets.end(), common.begin(), common.end());
  for (const char* devices : {"devices=1", "devices=2"}) {
    std::vector<std::string> here = sets;
    here.emplace_back(devices);
    const Metrics metrics = train("grpo", here);
    EXPECT_GT(number(metrics.back(), "val/reward/mean"), before + 0.7 * (teachers - before));
    EXPECT_LT(number(metrics.back(), "actor/reward_kl_penalty"), 0.5 * number(metrics[1], "actor/reward_kl_penalty"));
    for (size_t i = 1; i < metrics.size(); ++i) EXPECT_EQ(number(metrics[i], "mismatch/logprob_abs_max"), 0.0);
  }
}

// A teacher that is the policy itself has nothing to teach.
TEST_F(Learning, NothingFromItself) {
  for (const nlohmann::json& line : train("grpo", {"algorithm.advantage=distillation", "run.iterations=1"})) {
    EXPECT_EQ(number(line, "actor/reward_kl_penalty"), 0.0);
    EXPECT_EQ(number(line, "actor/grad_norm"), 0.0);
  }
}

// WPO: the weights of pairs follow the policy, and held-out pairs are told apart all the same.
TEST_F(Learning, FromPairsByTheirWeights) {
  const Metrics metrics = train("dpo", {"train.learning_rate=1e-2", "run.iterations=20", "train.samples_per_update=16",
                                        "data.val_size=12", "algorithm.use_weighting=true"});
  EXPECT_GT(number(metrics.back(), "val/rewards/accuracies"), 0.7);
  EXPECT_GT(number(metrics[1], "rewards/weights"), 0.0);
  EXPECT_NE(number(metrics[1], "rewards/weights"), number(metrics.back(), "rewards/weights"));
}

TEST_F(Learning, ByEveryPolicyLoss) {
  for (const std::string& type : rlhf::loss_types("rollouts")) expect_learns("algorithm.loss_type=" + type);
}

// The greedy sample of each prompt is drawn and judged, and not trained.
TEST_F(Algorithms, RemaxTrainsAllSamplesButTheGreedyOnes) {
  for (const nlohmann::json& line : train("grpo", {"algorithm.advantage=remax", "train.samples_per_update=6"})) {
    EXPECT_EQ(number(line, "actor/updates"), 2.0) << "12 of 16 rows";
    EXPECT_NEAR(number(line, "mismatch/tokens_compared") + number(line, "mismatch/tokens_other_version"),
                12 * number(line, "response_length/mean"), 1e-6);
  }
  EXPECT_EQ(lines_of(output_ + "/samples/step-000001.jsonl").size(), 12U);
}

TEST_F(Algorithms, GroupsOfEqualRewardsAreReplaced) {
  const std::vector<std::string> sets = {"rollout.replace_equal_groups=true", "run.iterations=6",
                                         "train.learning_rate=1e-2"};
  double replaced = 0;
  for (const nlohmann::json& line : train("grpo", sets)) {
    EXPECT_EQ(number(line, "critic/rewards/frac_zero_std"), 0.0);
    EXPECT_NEAR(number(line, "mismatch/tokens_compared"), completion_tokens(line), 1e-6) << "16 rows, as without";
    replaced += number(line, "rollout/groups_replaced");
  }
  EXPECT_GT(replaced, 0.0);
  const std::string first = model_bytes(output_);
  train("grpo", sets);
  EXPECT_TRUE(model_bytes(output_) == first) << "which prompts come in their place is drawn by the seed";
}

TEST_F(Algorithms, TheCoefficientOfTheKlFollowsItsTarget) {
  const Metrics metrics = train("grpo", {"algorithm.kl_coefficient=0.1", "algorithm.kl_target=1e-6",
                                         "algorithm.kl_horizon=160", "train.learning_rate=1e-2", "run.iterations=4"});
  double before = 0.1;
  for (const nlohmann::json& line : metrics) {
    EXPECT_FLOAT_EQ(number(line, "actor/reward_kl_penalty_coeff"), before);
    before *= line == metrics.front() ? 0.98 : 1.02;  // 16 of 160 samples, clipped at a fifth: the KL is 0, then larger
  }
}

// Long completions lose reward, and those that are cut are not trained.
TEST_F(Algorithms, DapoShapesTheRewardsOfLongCompletions) {
  const Metrics plain = train("grpo", {"run.iterations=1"});
  const Metrics shaped =
      train("grpo", {"run.iterations=1", "algorithm.loss_type=dapo", "algorithm.epsilon_high=0.28",
                     "algorithm.overlong_buffer_tokens=4", "algorithm.mask_truncated_completions=true"});
  EXPECT_LT(number(shaped.front(), "critic/rewards/mean"), number(plain.front(), "critic/rewards/mean"));
  EXPECT_LT(number(shaped.front(), "mismatch/tokens_compared"), number(plain.front(), "mismatch/tokens_compared"));
}

}  // namespace
}  // namespace collimate::test
