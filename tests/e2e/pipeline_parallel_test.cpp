#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/near_runs.h"
#include "tests/support/base/error_of.h"
#include "tests/support/small_families.h"

// Devices that each have some of the blocks of every model, against one device.
namespace collimate::test {
namespace {

class PipelineParallel : public NearRuns {
 protected:
  static std::vector<std::string> one() { return {"algorithm.beta=0.1", "algorithm.loss_type=dapo"}; }
  static std::vector<std::string> staged() { return with(one(), {"devices=2", "pp=2"}); }

  void expect_same_run(const std::string& expected, const std::string& name) {
    EXPECT_EQ(lasting_metrics(directory(expected)), lasting_metrics(directory(name))) << name;
    EXPECT_TRUE(exported_weights(directory(expected)) == exported_weights(directory(name))) << name;
  }
};

TEST_F(PipelineParallel, GrpoHasTheBitsOfOneDevice) {
  train("one", "grpo", one());
  train("threads", "grpo", staged());
  recipe::TrainCall processes;
  processes.worker_command = {collimate_program(), "worker"};
  train("processes", "grpo", with(staged(), {"cluster=local-processes"}), processes);
  for (const char* name : {"threads", "processes"}) {
    expect_no_mismatch(name);
    expect_same_run("one", name);
  }
  train("pairs", "grpo", with(one(), {"devices=4", "pp=2", "train.micro_batch_tokens=64"}));
  train("copies", "grpo", with(one(), {"devices=2", "train.micro_batch_tokens=64"}));
  expect_same_run("copies", "pairs");
}

TEST_F(PipelineParallel, PpoWithAllItsModelsHasTheBitsOfOneDevice) {
  const auto sets = with_reward_model({});
  train("one", "ppo", sets);
  train("staged", "ppo", with(sets, {"devices=2", "pp=2"}));
  expect_no_mismatch("staged");
  expect_same_run("one", "staged");
  EXPECT_TRUE(value_weights(directory("one")) == value_weights(directory("staged")));
}

TEST_F(PipelineParallel, ARunThatWasCutGoesOnOnAnyDevices) {
  train("one", "grpo", one());
  train("cut", "grpo", with(staged(), {"run.iterations=2"}));
  train("cut", "grpo", staged());
  train("joined", "grpo", with(staged(), {"run.iterations=2"}));
  train("joined", "grpo", one());
  train("parted", "grpo", with(one(), {"run.iterations=2"}));
  train("parted", "grpo", staged());
  for (const char* name : {"cut", "joined", "parted"}) expect_same_run("one", name);
}

// Stages of tensor ranks, of copies that share their gradients.
TEST_F(PipelineParallel, StagesOfPiecesAndSharesAreOneDevicesRun) {
  const auto one_of_chunks = with(one(), {"models.policy.reduction_chunks=2"});
  train("one", "grpo", one_of_chunks);
  train("pieces", "grpo", with(one_of_chunks, {"devices=4", "pp=2", "tp=2"}));
  expect_no_mismatch("pieces");
  expect_near_run("one", "pieces");
  train("shares", "grpo",
        with(one_of_chunks,
             {"placement={version: 1, devices: {count: 4, kind: cpu}, groups: {all: {devices: [0, 1, 2, 3], models: "
              "[policy, policy_trainer, reference]}}, layouts: {policy: {generate: {pp: 2}}, policy_trainer: {train: "
              "{pp: 2, zero: 2}}, reference: {log_probs: {pp: 2}}}}"}));
  expect_no_mismatch("shares");
  expect_near_run("one", "shares");
}

TEST_F(PipelineParallel, ExpertsAndAdaptersAreStagedToo) {
  write_small_model_of("deepseek_v3", scratch_ / "start");
  const std::vector<std::string> routed = {"train.router_replay=rollout"};
  train("one", "grpo", with(one(), routed));
  train("staged", "grpo", with(staged(), routed));
  expect_no_mismatch("staged");
  expect_near_run("one", "staged");
  const std::vector<std::string> lora = {"models.policy.lora.rank=2"};
  train("adapters", "grpo", with(one(), lora));
  train("staged-adapters", "grpo", with(staged(), lora));
  expect_near_run("adapters", "staged-adapters");  // the norm of adapters is a sum over stages
}

TEST_F(PipelineParallel, EachDeviceTakesWhatIsPlanned) {
  train("staged", "grpo", with(staged(), {"train.micro_batch_tokens=64"}));
  const auto summary = nlohmann::json::parse(read_text(directory("staged") + "/summary.json"));
  size_t items = 0;
  for (const nlohmann::json& worker : summary.at("memory").at("workers"))
    for (const nlohmann::json& one : worker.at("items")) {
      EXPECT_LE(one.at("peak_bytes"), one.at("planned_bytes")) << one.at("item");
      ++items;
    }
  EXPECT_GT(items, 10U);
}

TEST_F(PipelineParallel, SizesThatDoNotFitAreNamed) {
  const auto error = [&](const std::vector<std::string>& sets) {
    return base::message_of<base::InputError>([&] { train("refused", "grpo", with(one(), sets)); });
  };
  EXPECT_THAT(error({"devices=3", "pp=2"}), testing::HasSubstr("[pp] expected a divisor of the 3 devices, got 2"));
  EXPECT_THAT(error({"devices=8", "pp=8"}), testing::HasSubstr("a pp of at most the model's"));
  EXPECT_THAT(error({"placement={version: 1, devices: {count: 2, kind: cpu}, groups: {all: {devices: [0, 1], models: "
                     "[policy, policy_trainer, reference]}}}",
                     "pp=2"}),
              testing::HasSubstr("pp in the placement's layouts"));
}

}  // namespace
}  // namespace collimate::test
