#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/near_runs.h"
#include "tests/support/small_families.h"

// Devices that share the experts of a mixture, each with rows of its own, against one device.
namespace collimate::test {
namespace {

class ExpertParallel : public NearRuns {
 protected:
  void begin_from(const std::string& family) { write_small_model_of(family, scratch_ / "start"); }
  static std::vector<std::string> shared(const std::vector<std::string>& of_one) {
    return with(of_one, {"devices=2", "ep=2"});
  }
};

// With recorded choices and the loss that spreads tokens over experts.
TEST_F(ExpertParallel, GrpoIsThatOfOneDeviceButForTheOrderOfSums) {
  begin_from("mixtral");
  const auto sets = with(one(), {"train.router_aux_loss_coef=0.01", "train.router_replay=compare"});
  train("one", "grpo", sets);
  const std::string threads = train("threads", "grpo", shared(sets));
  EXPECT_TRUE(threads == train_apart("processes", "grpo", shared(sets)));
  EXPECT_EQ(lasting_metrics(directory("threads")), lasting_metrics(directory("processes")));
  train("copies", "grpo", with(sets, {"devices=4", "ep=2"}));
  train("parts", "grpo", with(sets, {"devices=4", "ep=4"}));  // of six experts
  for (const char* name : {"threads", "copies", "parts"}) {
    expect_no_mismatch(name);
    expect_near_run("one", name);
    const auto first = metrics_of(directory("one")).at(0), given = metrics_of(directory(name)).at(0);
    for (const char* metric : {"actor/router_aux_loss", "actor/router_busiest_share", "actor/router_spread"})
      EXPECT_NEAR(first.at(metric).get<double>(), given.at(metric).get<double>(), 1e-6) << metric;
    EXPECT_EQ(first.at("mismatch/routes_compared"), given.at("mismatch/routes_compared"));
    EXPECT_EQ(given.at("mismatch/routes_differ"), 0);
  }
}

// Updates of samples and texts, and the moving average of weights of which each device has some experts.
TEST_F(ExpertParallel, TextsAndAveragesBesideIt) {
  begin_from("mixtral");
  const auto sets =
      with(one(), {"data.ptx=" + (scratch_ / "demonstrations.jsonl"), "data.max_tokens=16", "train.ptx_weight=3",
                   "train.ema=0.9", "train.micro_batch_tokens=64", "train.router_replay=rollout"});
  train("one", "grpo", sets);
  train("shared", "grpo", shared(sets));
  expect_no_mismatch("shared");
  expect_near_run("one", "shared");
  EXPECT_NE(read_text(directory("shared") + "/model-ema/model.safetensors"),
            read_text(directory("shared") + "/model/model.safetensors"));
}

// With tensor ranks, stages, context ranks; replayed choices of grouped experts.
TEST_F(ExpertParallel, OtherAxesBesideIt) {
  begin_from("deepseek_v3");
  const auto sets = with(one(), {"train.router_replay=rollout", "models.policy.reduction_chunks=2"});
  train("one", "grpo", sets);
  for (const char* axis : {"tp", "pp", "cp"}) {
    train(axis, "grpo", with(sets, {"devices=4", "ep=2", fmt::format("{}=2", axis)}));
    expect_no_mismatch(axis);
    expect_near_run("one", axis);
  }
}

// On the same devices with the same bits, and from ep 1 to 2 and back but for the order of sums.
TEST_F(ExpertParallel, ARunThatWasCutGoesOnOnAnyDevices) {
  begin_from("qwen2_moe");
  for (const char* recipe : {"sft", "grpo"}) {
    const auto named = [&](const std::string& what) { return fmt::format("{}-{}", recipe, what); };
    expect_goes_on(named("whole"), recipe, shared({}));
    train(named("one"), recipe, {});
    train_in_two(named("joined"), recipe, shared({}), {});
    train_in_two(named("parted"), recipe, {}, shared({}));
    for (const char* name : {"whole", "joined", "parted"}) expect_near_weights(named("one"), named(name));
  }
}

// Each device keeps a part of all weights, and of an expert those that have it: the bits of whole ones.
TEST_F(ExpertParallel, DevicesThatShareTheWeightsTrainAsWithWholeOnes) {
  begin_from("mixtral");
  replace_in(scratch_ / "start/config.json", "\"hidden_size\": 32", "\"hidden_size\": 96");  // of 32 none is cut
  const auto sets = with(one(), {"devices=4", "ep=2", "train.micro_batch_tokens=32", "rollout.prompts_per_iteration=3",
                                 "rollout.samples_per_prompt=2"});
  train("whole", "grpo", with(sets, {"zero=2"}));
  train("shared", "grpo", with(sets, {"zero=3"}));
  train_apart("processes", "grpo", with(sets, {"zero=3"}));
  train_in_two("cut", "grpo", with(sets, {"zero=3"}), with(sets, {"zero=3"}));
  for (const char* name : {"shared", "processes", "cut"}) {
    expect_no_mismatch(name);
    EXPECT_TRUE(exported_weights(directory("whole")) == exported_weights(directory(name))) << name;
  }
  for (const char* item : {"policy/master", "reference/values"})
    EXPECT_LT(taken_bytes(directory("shared"), item), 0.6 * taken_bytes(directory("whole"), item)) << item;
  for (const char* item : {"policy/gathered", "policy/panels", "policy/gradient"})
    EXPECT_GT(taken_bytes(directory("shared"), item), 0) << item;
}

// Policy, value model and reference are mixtures, the reward model is none.
TEST_F(ExpertParallel, PpoAndDpoShareThemToo) {
  const auto sets = with_reward_model({"run.iterations=1"});
  begin_from("mixtral");
  train("one", "ppo", sets);
  train("shared", "ppo", shared(sets));
  expect_no_mismatch("shared");
  expect_near_weights("one", "shared");
  train("dpo-one", "dpo", {});
  const std::string threads = train("dpo-shared", "dpo", shared({}));
  expect_near_weights("dpo-one", "dpo-shared");
  EXPECT_TRUE(threads == train_apart("dpo-processes", "dpo", shared({})));
}

// Two of four devices have no rows, in generation, scoring and training.
TEST_F(ExpertParallel, DevicesWithoutRowsTakePart) {
  begin_from("mixtral");
  const auto few = with(one(), {"rollout.prompts_per_iteration=1", "rollout.samples_per_prompt=2"});
  train("one", "grpo", few);
  train("shared", "grpo", with(few, {"devices=4", "ep=4"}));
  expect_no_mismatch("shared");
  expect_near_weights("one", "shared");
}

// One of the two has no row while the other one answers the only prompt.
TEST_F(ExpertParallel, ADeviceWithoutHeldOutRowsTakesPart) {
  begin_from("mixtral");
  write_text(scratch_ / "held.jsonl", lines_of(scratch_ / "demonstrations.jsonl").at(0) + "\n");
  const std::vector<std::string> sets = {"run.iterations=1", "data.eval=" + (scratch_ / "held.jsonl")};
  train("one", "sft", sets);
  train("shared", "sft", shared(sets));
  const auto answer = [&](const std::string& name) {
    const std::vector<std::string> rows = lines_of(directory(name) + "/samples/eval-000000.jsonl");
    return nlohmann::json::parse(rows.at(0)).at("model_answer");
  };
  EXPECT_EQ(answer("shared"), answer("one"));
}

// Adapters beside experts that are frozen, and a placement that says ep by function.
TEST_F(ExpertParallel, AdaptersAndPlacementsShareThem) {
  begin_from("mixtral");
  const auto lora = with(one(), {"models.policy.lora.rank=4"});
  train("one", "grpo", lora);
  train("adapters", "grpo", shared(lora));
  expect_no_mismatch("adapters");
  expect_near_weights("one", "adapters");
  train("whole", "grpo", one());
  train("placed", "grpo",
        with(one(), {"placement={version: 1, devices: {count: 4, kind: cpu}, groups: {all: {devices: [0, 1, 2, 3], "
                     "models: [policy, policy_trainer, reference]}}, layouts: {policy: {generate: {ep: 2, dp: 2}}, "
                     "policy_trainer: {train: {ep: 2, zero: 2}}}}"}));
  expect_no_mismatch("placed");
  expect_near_weights("whole", "placed");
}

TEST_F(ExpertParallel, EachDeviceTakesWhatIsPlanned) {
  begin_from("mixtral");
  train("one", "grpo", one());
  train("shared", "grpo", shared(one()));
  for (const char* item : {"policy/master", "policy/panels"})
    EXPECT_LT(taken_bytes(directory("shared"), item), 0.8 * taken_bytes(directory("one"), item)) << item;
  for (const char* item : {"policy/optimizer", "policy/gradient", "policy/activations", "policy/workspace"})
    taken_bytes(directory("shared"), item);
}

TEST_F(ExpertParallel, LayoutsThatDoNotFitAreNamed) {
  EXPECT_EQ(refusal("grpo", {"devices=2", "ep=2"}),
            "[ep] expected 1, as no model of the run has experts, got 2; try tp, pp or cp, or leaving it out");
  begin_from("mixtral");
  EXPECT_EQ(refusal("grpo", {"devices=3", "ep=2"}), "[ep] expected a divisor of the 3 devices, got 2; try devices: 2");
  EXPECT_EQ(refusal("sft", {"devices=8", "ep=8"}),
            "[ep] expected at most the 6 experts of policy, got 8; try a smaller ep");
  EXPECT_EQ(refusal("sft", {"devices=6", "cp=3", "ep=2"}),
            "[ep] expected a divisor or a multiple of cp 3, got 2; try ep: 3");
  const auto placed = [](const std::string& layouts, const std::string& devices = "0, 1") {
    return fmt::format(
        "placement={{version: 1, devices: {{count: 8, kind: cpu}}, groups: {{all: {{devices: [{}], models: [policy, "
        "policy_trainer, reference]}}}}, layouts: {{{}}}}}",
        devices, layouts);
  };
  EXPECT_EQ(refusal("grpo", with(one(), {placed("policy: {generate: {ep: 8, dp: 8}}", "0, 1, 2, 3, 4, 5, 6, 7")})),
            "[placement.layouts.policy.generate.ep] expected at most the 6 experts, got 8; try a smaller ep");
  EXPECT_EQ(refusal("grpo", with(one(), {placed("policy_trainer: {train: {ep: 2, cp: 3}}", "0, 1, 2, 3, 4, 5")})),
            "[placement.layouts.policy_trainer.train.ep] expected a divisor or a multiple of cp 3, got 2; try ep: 3");
  EXPECT_EQ(refusal("grpo", with(one(), {placed("policy: {generate: {tp: 2, ep: 2}}")})),
            "[placement.layouts.policy.generate.ep] expected a divisor of dp 1 times cp 1, got 2; try dp: 2");
}

}  // namespace
}  // namespace collimate::test
