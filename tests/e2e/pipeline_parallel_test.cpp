#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/near_runs.h"
#include "tests/support/base/error_of.h"
#include "tests/support/small_families.h"

// Devices that each have some of the blocks of every model, against one device.
namespace collimate::test {
namespace {

class PipelineParallel : public NearRuns {
 protected:
  static std::vector<std::string> staged() { return with(one(), {"devices=2", "pp=2"}); }
  // Gives the small model so many blocks.
  void write_blocks(int blocks) {
    const std::filesystem::path file = std::filesystem::path(scratch_ / "start") / "config.json";
    auto config = nlohmann::json::parse(read_text(file));
    config["num_hidden_layers"] = blocks;
    std::ofstream(file) << config.dump();
  }
  // Two devices whose stages have these layers: in training, in generation, of the reference.
  static std::vector<std::string> layers(const std::string& trains, const std::string& generates,
                                         const std::string& reference) {
    const auto of = [](const std::string& stages) { return "{pp: 2, stages: [" + stages + "]}"; };
    return {placed(fmt::format("policy_trainer: {{train: {}}}, policy: {{generate: {}}}, reference: {{log_probs: {}}}",
                               of(trains), of(generates), of(reference)))};
  }
};

TEST_F(PipelineParallel, GrpoHasTheBitsOfOneDevice) {
  train("one", "grpo", one());
  train("threads", "grpo", staged());
  train_apart("processes", "grpo", staged());
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
  train_in_two("cut", "grpo", staged(), staged());
  train_in_two("joined", "grpo", staged(), one());
  train_in_two("parted", "grpo", one(), staged());
  for (const char* name : {"cut", "joined", "parted"}) expect_same_run("one", name);
}

// Weights go from stages to unlike ones, and checkpoints into other ones.
TEST_F(PipelineParallel, StagesOfAnyLayersHaveTheBitsOfOneDevice) {
  write_blocks(5);
  train("one", "grpo", one());
  const auto early = with(one(), layers("1, 4", "1, 4", "3, 2")), late = with(one(), layers("3, 2", "3, 2", "3, 2"));
  train("uneven", "grpo", early);
  train_in_two("moved", "grpo", early, late);
  train_in_two("joined", "grpo", early, one());
  for (const char* name : {"uneven", "moved", "joined"}) {
    expect_no_mismatch(name);
    expect_same_run("one", name);
  }
  train("unlike", "grpo", with(one(), layers("4, 1", "2, 3", "1, 4")));
  expect_no_mismatch("unlike");
  EXPECT_TRUE(exported_weights(directory("one")) == exported_weights(directory("unlike")));
  EXPECT_GT(taken_bytes(directory("unlike"), "policy copy/values"), 0);
}

// Each device has several stages, which are not neighbours.
TEST_F(PipelineParallel, InterleavedStagesHaveTheBitsOfOneDevice) {
  write_blocks(5);
  const auto small = with(one(), {"train.micro_batch_tokens=64"});
  const auto runs =
      with(small, {placed("policy_trainer: {train: {pp: 2, virtual_stages: 2}}, policy: {generate: {pp: 2, "
                          "virtual_stages: 2}}, reference: {log_probs: {pp: 2, virtual_stages: 2, stages: "
                          "[1, 1, 2, 1]}}")});
  train("one", "grpo", small);
  train("threads", "grpo", runs);
  train_apart("processes", "grpo", runs);
  train_in_two("joined", "grpo", runs, small);
  train_in_two("parted", "grpo", with(small, layers("2, 3", "2, 3", "2, 3")), runs);
  for (const char* name : {"threads", "processes", "joined", "parted"}) {
    expect_no_mismatch(name);
    expect_same_run("one", name);
  }
  const auto summary = nlohmann::json::parse(read_text(directory("threads") + "/summary.json"));
  for (const nlohmann::json& worker : summary.at("memory").at("workers"))
    for (const nlohmann::json& item : worker.at("items"))
      EXPECT_LE(item.at("peak_bytes"), item.at("planned_bytes")) << item.at("item");
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
  const auto error = [&](const std::vector<std::string>& sets) { return refusal("grpo", with(one(), sets)); };
  expect_axis_is_checked("pp");
  EXPECT_THAT(error({"devices=8", "pp=8"}), testing::HasSubstr("a pp of at most the model's"));
  EXPECT_THAT(error({placed(""), "pp=2"}), testing::HasSubstr("pp in the placement's layouts"));
  EXPECT_THAT(error(layers("1, 2", "1, 2", "1, 1")),
              testing::HasSubstr("stages of 1 block or more that are the model's 2 together, got stages: [1, 2], which "
                                 "are 3"));
  EXPECT_THAT(error({placed("policy: {generate: {pp: 2, virtual_stages: 2}}, policy_trainer: {train: {pp: 2, "
                            "virtual_stages: 2}}, reference: {log_probs: {pp: 2}}")}),
              testing::HasSubstr("a pp times virtual_stages of at most the model's 2 blocks"));
  EXPECT_THAT(error(layers("1, 1, 1", "1, 1", "1, 1")), testing::HasSubstr("try pp: 3"));
}

}  // namespace
}  // namespace collimate::test
