#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/near_runs.h"
#include "tests/support/base/error_of.h"

// Devices that share the weights of every model (stage 3 of ZeRO), against devices that each have all of them.
namespace collimate::test {
namespace {

class SharedModels : public NearRuns {
 protected:
  static std::vector<std::string> plain(int zero, const std::string& devices = "2") {
    return {"algorithm.beta=0.1", "algorithm.loss_type=dapo", "devices=" + devices, fmt::format("zero={}", zero)};
  }
  // Whose rows are dealt to devices in another order, which generation's own counts tell.
  void expect_same_learning(const std::string& expected, const std::string& name) {
    const auto one = metrics_of(directory(expected)), other = metrics_of(directory(name));
    ASSERT_EQ(one.size(), other.size());
    for (size_t i = 0; i < one.size(); ++i)
      for (const char* metric : {"actor/loss", "actor/grad_norm", "critic/rewards/mean", "response_length/mean"})
        EXPECT_EQ(one[i].at(metric), other[i].at(metric)) << name << " " << metric;
    EXPECT_TRUE(exported_weights(directory(expected)) == exported_weights(directory(name))) << name;
  }
  void expect_planned(const std::string& name) const {
    const auto summary = nlohmann::json::parse(read_text(directory(name) + "/summary.json"));
    for (const nlohmann::json& worker : summary.at("memory").at("workers"))
      for (const nlohmann::json& one : worker.at("items"))
        EXPECT_LE(one.at("peak_bytes"), one.at("planned_bytes")) << name << " " << one.at("item");
  }
};

TEST_F(SharedModels, GrpoHasTheBitsOfWholeOnes) {
  train("whole", "grpo", plain(0));
  train("threads", "grpo", plain(3));
  recipe::TrainCall processes;
  processes.worker_command = {collimate_program(), "worker"};
  train("processes", "grpo", with(plain(3), {"cluster=local-processes"}), processes);
  for (const char* name : {"threads", "processes"}) {
    expect_no_mismatch(name);
    expect_same_run("whole", name);
  }
  expect_planned("threads");
  EXPECT_LT(taken_bytes(directory("threads"), "policy/master"), 0.7 * taken_bytes(directory("whole"), "policy/master"));
  EXPECT_LT(taken_bytes(directory("threads"), "reference/values"),
            0.7 * taken_bytes(directory("whole"), "reference/values"));
}

TEST_F(SharedModels, PpoSharesAllItsModels) {
  const auto sets = with_reward_model({"devices=2"});
  train("whole", "ppo", with(sets, {"zero=2"}));
  train("shared", "ppo", with(sets, {"zero=3"}));
  expect_no_mismatch("shared");
  expect_same_run("whole", "shared");
  expect_planned("shared");
}

// Rows of a supervised update are of unlike lengths, and some ranks have more micro-batches than others.
TEST_F(SharedModels, SftOfUnlikeMicroBatchesIsThatOfWholeOnes) {
  for (const char* devices : {"2", "3"}) {
    const std::vector<std::string> sets = {fmt::format("devices={}", devices), "train.micro_batch_tokens=24"};
    const std::string whole = fmt::format("whole-{}", devices), shared = fmt::format("shared-{}", devices);
    train(whole, "sft", with(sets, {"zero=2"}));
    train(shared, "sft", with(sets, {"zero=3"}));
    expect_same_run(whole, shared);
  }
}

// Devices have unlike rows of the updates behind an iteration's first, whose log-probs are checked ahead of them.
TEST_F(SharedModels, LaterUpdatesAreCheckedTogether) {
  const std::vector<std::string> sets = {"train.samples_per_update=4"};
  train("whole", "grpo", with(plain(2, "3"), sets));
  train("shared", "grpo", with(plain(3, "3"), sets));
  expect_no_mismatch("shared");
  expect_same_learning("whole", "shared");
}

TEST_F(SharedModels, DevicesWithoutRowsTakePart) {
  const std::vector<std::string> few = {"rollout.prompts_per_iteration=1", "rollout.samples_per_prompt=2"};
  train("whole", "grpo", with(plain(2, "3"), few));
  train("shared", "grpo", with(plain(3, "3"), few));
  expect_same_learning("whole", "shared");
}

TEST_F(SharedModels, ARunThatWasCutGoesOnWithAnyStage) {
  train("whole", "grpo", plain(0));
  for (const auto& [first, second] : {std::pair(3, 3), {3, 0}, {0, 3}}) {
    const std::string name = fmt::format("from-{}-to-{}", first, second);
    train_in_two(name, "grpo", plain(first), plain(second));
    expect_same_run("whole", name);
  }
}

TEST_F(SharedModels, PiecesStagesAndTokensAreSharedToo) {
  for (const char* axis : {"tp=2", "pp=2", "cp=2"}) {
    const std::string whole = fmt::format("whole {}", axis), shared = fmt::format("shared {}", axis);
    train(whole, "grpo", with(plain(2, "4"), {axis}));
    train(shared, "grpo", with(plain(3, "4"), {axis}));
    expect_no_mismatch(shared);
    expect_same_learning(whole, shared);
    expect_planned(shared);
  }
}

TEST_F(SharedModels, AdaptersOfASharedModel) {
  const std::vector<std::string> lora = {"models.policy.lora.rank=2"};
  train("whole", "grpo", with(plain(2), lora));
  train("shared", "grpo", with(plain(3), lora));
  expect_no_mismatch("shared");
  expect_same_run("whole", "shared");
}

TEST_F(SharedModels, LayoutsThatDoNotFitAreNamed) {
  const auto error = [&](const std::vector<std::string>& sets) {
    return base::message_of<base::InputError>([&] { train("refused", "grpo", with({"algorithm.beta=0.1"}, sets)); });
  };
  const auto placed = [](const std::string& groups, const std::string& layouts) {
    return "placement={version: 1, devices: {count: 4, kind: cpu}, groups: {" + groups + "}, layouts: {" + layouts +
           "}}";
  };
  EXPECT_THAT(error({"devices=2", "zero=4"}), testing::HasSubstr("zero"));
  const std::string one_group = "all: {devices: [0, 1, 2, 3], models: [policy, policy_trainer, reference]}";
  EXPECT_EQ(error({placed(one_group, "policy: {generate: {dp: 2}}, policy_trainer: {train: {zero: 3}}")}),
            "[placement.layouts.policy.generate.dp] expected 4 with zero 3: all ranks of its group, got 2; try leaving "
            "it out");
  EXPECT_THAT(error({placed("a: {devices: [0, 1], models: [policy]}, b: {devices: [0, 1, 2, 3], models: "
                            "[policy_trainer, reference]}",
                            "policy_trainer: {train: {zero: 3}}")}),
              testing::HasSubstr("one group for both models, or zero 2"));
  EXPECT_THAT(error({placed(one_group, ""), "zero=3"}), testing::HasSubstr("zero in the placement's layouts"));
}

}  // namespace
}  // namespace collimate::test
