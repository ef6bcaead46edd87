#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/near_runs.h"
#include "tests/support/fault_control.h"
#include "tests/support/small_families.h"

// Training in one layout, generation in another: the bits are those of generation in training's layout.
namespace collimate::test {
namespace {

class UnlikeLayouts : public NearRuns {
 protected:
  static std::vector<std::string> one() {
    return {"models.policy.reduction_chunks=2", "algorithm.beta=0.1", "algorithm.loss_type=dapo"};
  }
  // Training and generation on devices of their own; the reference is beside the generator.
  static std::vector<std::string> apart(const std::string& trains, const std::string& train_layout,
                                        const std::string& generates, const std::string& generate_layout) {
    return placed("training: {devices: [" + trains + "], models: [policy_trainer]}, rollout: {devices: [" + generates +
                      "], models: [policy, reference]}",
                  train_layout, generate_layout);
  }
  // All on the same devices, where the generator has weights of its own.
  static std::vector<std::string> together(const std::string& train_layout, const std::string& generate_layout) {
    return placed("all: {devices: [0, 1], models: [policy_trainer, policy, reference]}", train_layout, generate_layout);
  }
  // A run of all models on both devices.
  std::string alike(const std::string& axis) { return train(axis, "grpo", with(one(), {"devices=2", axis})); }
  void expect_bits(const std::string& expected, const std::string& name, const std::vector<std::string>& sets) {
    EXPECT_TRUE(expected == train(name, "grpo", sets)) << name;
    expect_no_mismatch(name);
  }

 private:
  static std::vector<std::string> placed(const std::string& groups, const std::string& train_layout,
                                         const std::string& generate_layout) {
    return with(one(), {"placement={version: 1, devices: {count: 4, kind: cpu}, groups: {" + groups +
                        "}, layouts: {policy_trainer: {train: {" + train_layout + "}}, policy: {generate: {" +
                        generate_layout + "}}}}"});
  }
};

TEST_F(UnlikeLayouts, GenerationOnOtherDevices) {
  const std::string bits = train("one", "grpo", one());
  expect_bits(bits, "tp-1-to-2", apart("0", "dp: 1", "1, 2", "tp: 2"));
  expect_bits(alike("tp=2"), "tp-2-to-1", apart("0, 1", "tp: 2", "2", "dp: 1"));
  expect_bits(alike("pp=2"), "pp-2-to-1", apart("0, 1", "pp: 2", "2, 3", "dp: 1"));
  expect_bits(alike("zero=3"), "shares-to-tp-2", apart("0, 1", "zero: 3", "2, 3", "tp: 2"));
  for (const char* name : {"tp-2-to-1", "pp-2-to-1"}) expect_near_run("one", name);
}

TEST_F(UnlikeLayouts, TheSameDevicesMayBeCutInTwoWays) {
  expect_bits(alike("tp=2"), "tp-2-to-dp-2", together("tp: 2", "dp: 1"));
  expect_bits(alike("pp=2"), "pp-2-to-tp-2", together("pp: 2", "tp: 2"));
  expect_bits(alike("zero=3"), "shares-to-pp-2", together("zero: 3", "pp: 2"));
  for (const char* name : {"tp-2-to-dp-2", "pp-2-to-tp-2", "shares-to-pp-2"})
    EXPECT_GT(taken_bytes(directory(name), "policy copy/values"), 0) << name;
}

TEST_F(UnlikeLayouts, ProcessesHaveTheNumbersOfThreads) {
  const auto sets = apart("0, 1", "tp: 2", "2", "dp: 1");
  const std::string threads = train("threads", "grpo", sets);
  EXPECT_TRUE(threads == train_apart("processes", "grpo", sets));
  EXPECT_EQ(lasting_metrics(directory("threads")), lasting_metrics(directory("processes")));
}

TEST_F(UnlikeLayouts, AValueThatChangesOnTheWayStopsTheRunAndNamesTheParameter) {
  base::nudge_for_tests("weight_link");
  const std::string error =
      base::message_of<base::GuardError>([&] { train("nudged", "grpo", apart("0, 1", "tp: 2", "2", "dp: 1")); });
  base::nudge_for_tests("");
  EXPECT_THAT(error, testing::HasSubstr("[weights policy_trainer -> policy] expected model."));
  EXPECT_THAT(error, testing::HasSubstr(" with checksum "));
}

TEST_F(UnlikeLayouts, ExpertsAndAdaptersGoTheSameWay) {
  write_small_model_of("mixtral", scratch_ / "start");
  expect_bits(train("one", "grpo", one()), "ep-1-to-2", apart("0", "dp: 1", "2, 3", "dp: 2, ep: 2"));
  expect_bits(alike("ep=2"), "ep-2-to-1", apart("0, 1", "ep: 2", "2", "dp: 1"));
  const std::vector<std::string> lora = {"models.policy.lora.rank=2"};
  const std::string adapted = train("adapted", "grpo", with(one(), with(lora, {"devices=2", "tp=2"})));
  expect_bits(adapted, "adapters", with(apart("0, 1", "tp: 2", "2", "dp: 1"), lora));
}

}  // namespace
}  // namespace collimate::test
