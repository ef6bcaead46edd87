#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/run_support.h"
#include "tests/support/base/error_of.h"
#include "tests/support/small_families.h"

// Whole runs of mixtures, whose samples tell which experts their tokens passed.
namespace collimate::test {
namespace {

class RouterReplay : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    write_small_task(scratch_.path());
    write_small_model_of(GetParam(), scratch_.path() / "start");
  }

  Metrics run(const std::string& recipe, const std::string& name, const std::vector<std::string>& sets = {}) {
    train_text(small_config(recipe, scratch_.path()), scratch_ / name, sets);
    return metrics_of(scratch_ / name);
  }
  void expect_none_differ(const Metrics& metrics, const std::string& where) {
    ASSERT_EQ(metrics.size(), 3U) << where;
    for (const nlohmann::json& line : metrics) {
      EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0) << where;
      EXPECT_GT(line.at("mismatch/routes_compared").get<double>(), 0.0) << where;
      EXPECT_EQ(line.at("mismatch/routes_differ"), 0.0) << where;
    }
  }

  Scratch scratch_{"router-replay"};
};

// By default, and with what makes generation compute tokens in other company than training: prefixes found in the
// cache, few blocks, guesses, small steps; with several updates, recomputation, ranks and small micro-batches.
TEST_P(RouterReplay, TrainingChoosesAsGenerationDid) {
  const std::vector<std::vector<std::string>> all = {
      {},
      {"rollout.speculation=ngram", "rollout.speculation_tokens=4", "rollout.max_batch_tokens=24"},
      {"rollout.cache_blocks=5", "rollout.max_batch_sequences=3"},
      {"train.samples_per_update=8", "train.recompute=full", "train.micro_batch_tokens=40"},
      {"train.ppo_epochs=2",
       "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {all: {devices: [0, 1], models: [policy, "
       "policy_trainer]}}, layouts: {policy_trainer: {train: {dp: 2}}}}"}};
  for (size_t i = 0; i < all.size(); ++i)
    expect_none_differ(run("grpo", fmt::format("grpo-{}", i), all[i]), fmt::format("sets {}", i));
  expect_none_differ(run("ppo", "ppo"), "ppo");
}

// As none differ in the first update, replay changes nothing there; and whatever a run records, it learns the same.
TEST_P(RouterReplay, ReplayOfOwnChoicesChangesNoBit) {
  const Metrics compared = run("grpo", "compare"), replayed = run("grpo", "rollout", {"train.router_replay=rollout"}),
                without = run("grpo", "none", {"train.router_replay=none"});
  expect_none_differ(replayed, "rollout");
  for (const nlohmann::json& line : without) EXPECT_FALSE(line.contains("mismatch/routes_compared"));
  EXPECT_EQ(model_bytes(scratch_ / "rollout"), model_bytes(scratch_ / "compare"));
  EXPECT_EQ(model_bytes(scratch_ / "none"), model_bytes(scratch_ / "compare"));
}

// Rounded keys and values send some tokens to other experts. Where these are replayed, old log-probs and training's
// take the same ones. Later updates have other weights, and are told apart by replay.
TEST_P(RouterReplay, WhatARoundedCacheChoseIsReplayedByOldLogProbsToo) {
  const std::vector<std::string> sets = {"rollout.kv_cache_dtype=fp8", "train.samples_per_update=8"};
  run("grpo", "compare", sets);
  double differ = 0;
  for (const nlohmann::json& line : run("grpo", "rollout", {sets[0], sets[1], "train.router_replay=rollout"})) {
    EXPECT_EQ(line.at("mismatch/logprob_abs_max"), 0.0);
    differ += line.at("mismatch/routes_differ").get<double>();
  }
  EXPECT_GT(differ, 0.0) << "the case shows nothing";
  EXPECT_NE(model_bytes(scratch_ / "rollout"), model_bytes(scratch_ / "compare"));
}

// The run goes on where it stopped, and its samples come from another device.
TEST_P(RouterReplay, ARunGoesOnWhereItStopped) {
  const std::vector<std::string> sets = {
      "algorithm.beta=0.04", "train.router_replay=rollout",
      "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {training: {devices: [0], models: "
      "[policy_trainer, reference]}, generation: {devices: [1], models: [policy]}}}"};
  expect_none_differ(run("grpo", "whole", sets), "whole");
  train_until_stopped(small_config("grpo", scratch_.path()), scratch_ / "resumed", sets);
  expect_none_differ(run("grpo", "resumed", sets), "resumed");
  EXPECT_EQ(model_bytes(scratch_ / "resumed"), model_bytes(scratch_ / "whole"));
}

INSTANTIATE_TEST_SUITE_P(Mixtures, RouterReplay, testing::Values("mixtral", "qwen2_moe", "deepseek_v3"));

TEST(RouterReplayOption, IsRefusedWithoutExpertsAndWithoutSamples) {
  const Scratch scratch("router-replay-refused");
  write_small_task(scratch.path());
  const auto message = [&](const std::string& recipe) {
    return base::message_of(
        [&] { train_text(small_config(recipe, scratch.path()), scratch / recipe, {"train.router_replay=rollout"}); });
  };
  EXPECT_THAT(message("grpo"), testing::HasSubstr("[train.router_replay] expected compare or none with a model "
                                                  "without experts, got rollout; try leaving it out"));
  EXPECT_THAT(message("sft"), testing::HasSubstr("[train.router_replay] expected an option that recipe sft reads"));
}

}  // namespace
}  // namespace collimate::test
