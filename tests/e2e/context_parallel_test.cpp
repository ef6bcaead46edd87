#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/near_runs.h"
#include "tests/support/small_families.h"

// Devices that share the tokens of each row that is scored or trained, against one device.
namespace collimate::test {
namespace {

class ContextParallel : public NearRuns {
 protected:
  static std::vector<std::string> shared(const std::vector<std::string>& of_one) {
    return with(of_one, {"devices=2", "cp=2"});
  }
  // The gradient of the first update, of models that both have.
  void expect_first_gradients(const std::string& expected, const std::string& name, const std::string& model) {
    const SavedValues one = first_gradients(directory(expected), model),
                      given = first_gradients(directory(name), model);
    EXPECT_GT(one.size(), 10U);
    for (const auto& [tensor, gradient] : one) {
      const auto [distance, norm] = distance_and_norm(gradient, given.at(tensor));
      EXPECT_LE(distance, 1e-5 * norm) << model << " " << tensor;
    }
  }
};

TEST_F(ContextParallel, GrpoIsThatOfOneDeviceButForTheOrderOfSums) {
  train("one", "grpo", one());
  const std::string threads = train("threads", "grpo", shared(one()));
  EXPECT_TRUE(threads == train_apart("processes", "grpo", shared(one())));
  EXPECT_EQ(lasting_metrics(directory("threads")), lasting_metrics(directory("processes")));
  // Two data-parallel ranks of two each, and tensor ranks too, whose bits are those of sums that are cut alike.
  train("copies", "grpo", with(one(), {"devices=4", "cp=2"}));
  const std::vector<std::string> chunks = with(one(), {"models.policy.reduction_chunks=2"});
  train("one-of-chunks", "grpo", chunks);
  train("pieces", "grpo", with(chunks, {"devices=4", "tp=2", "cp=2"}));
  for (const char* name : {"threads", "copies", "pieces"}) {
    const std::string expected = name == std::string("pieces") ? "one-of-chunks" : "one";
    expect_no_mismatch(name);
    expect_near_run(expected, name);
  }
}

// Devices that exchange tokens for heads: their forwards have the bits of devices that gather keys and values.
TEST_F(ContextParallel, GrpoOverHeadsIsThatOfOneDeviceButForTheOrderOfSums) {
  train("one", "grpo", one());
  const auto by_heads = with(shared(one()), {"cp_kind=ulysses"});
  const std::string threads = train("threads", "grpo", by_heads);
  EXPECT_TRUE(threads == train_apart("processes", "grpo", by_heads));
  EXPECT_EQ(lasting_metrics(directory("threads")), lasting_metrics(directory("processes")));
  train("gathered", "grpo", shared(one()));
  for (const char* name : {"threads", "gathered"}) {
    expect_no_mismatch(name);
    expect_near_run("one", name);
  }
  taken_bytes(directory("threads"), "policy/activations");
  taken_bytes(directory("threads"), "policy/workspace");
}

TEST_F(ContextParallel, ARunThatWasCutGoesOnInTheOtherKind) {
  train("one", "dpo", {});
  train_in_two("moved", "dpo", with(shared({}), {"cp_kind=ulysses"}), shared({}));
  expect_near_weights("one", "moved");
}

// On the same devices with the same bits, and on one device but for the order of sums.
TEST_F(ContextParallel, ARunThatWasCutGoesOn) {
  for (const char* recipe : {"sft", "dpo", "grpo"}) {
    const auto named = [&](const std::string& what) { return fmt::format("{}-{}", recipe, what); };
    expect_goes_on(named("whole"), recipe, shared({}));
    train(named("one"), recipe, {});
    train_in_two(named("moved"), recipe, shared({}), {});
    for (const char* name : {"whole", "moved"}) expect_near_weights(named("one"), named(name));
  }
}

TEST_F(ContextParallel, ProcessesAreThreads) {
  for (const char* recipe : {"sft", "dpo"}) {
    const std::string threads = train(fmt::format("{}-threads", recipe), recipe, shared({}));
    EXPECT_TRUE(threads == train_apart(fmt::format("{}-processes", recipe), recipe, shared({}))) << recipe;
    EXPECT_EQ(lasting_metrics(directory(fmt::format("{}-threads", recipe))),
              lasting_metrics(directory(fmt::format("{}-processes", recipe))))
        << recipe;
  }
}

// Policy, value model, reference and reward model share tokens.
TEST_F(ContextParallel, PposFirstUpdateIsThatOfOneDevice) {
  const auto sets = with_reward_model({"run.iterations=1"});
  train("one", "ppo", sets);
  train("shared", "ppo", shared(sets));
  expect_no_mismatch("shared");
  for (const char* model : {"policy_trainer", "value"}) expect_first_gradients("one", "shared", model);
}

TEST_F(ContextParallel, MixturesSumTheirLoadOverAllTokens) {
  write_small_model_of("mixtral", scratch_ / "start");
  const auto sets = with(one(), {"train.router_aux_loss_coef=0.01", "train.router_replay=compare"});
  train("one", "grpo", sets);
  train("shared", "grpo", shared(sets));
  expect_no_mismatch("shared");
  const auto first = metrics_of(directory("one")).at(0), given = metrics_of(directory("shared")).at(0);
  for (const char* name : {"actor/router_aux_loss", "actor/router_busiest_share", "actor/router_spread"})
    EXPECT_NEAR(first.at(name).get<double>(), given.at(name).get<double>(), 1e-6) << name;
  EXPECT_EQ(first.at("mismatch/routes_compared"), given.at("mismatch/routes_compared"));
  expect_near_weights("one", "shared");
}

TEST_F(ContextParallel, EachDeviceTakesWhatIsPlanned) {
  const auto bytes_of = [&](const std::string& name, const std::string& item) {
    return taken_bytes(directory(name), item);
  };
  train("one", "grpo", one());
  train("shared", "grpo", shared(one()));
  EXPECT_LT(bytes_of("shared", "policy/activations"), 0.75 * bytes_of("one", "policy/activations"));
  EXPECT_LT(bytes_of("shared", "policy/optimizer"), 0.6 * bytes_of("one", "policy/optimizer"));
  for (const char* item : {"policy/workspace", "reference/workspace", "policy/gradient"}) bytes_of("shared", item);
}

TEST_F(ContextParallel, LayoutsThatDoNotFitAreNamed) {
  const auto error = [&](const std::vector<std::string>& sets) { return refusal("grpo", with(one(), sets)); };
  EXPECT_EQ(error({"devices=3", "cp=2"}), "[cp] expected a divisor of the 3 devices, got 2; try devices: 2");
  EXPECT_EQ(error({"devices=4", "tp=2", "cp=4"}),
            "[cp] expected a divisor of 2, the devices by tp 2, got 4; try devices: 8");
  EXPECT_EQ(
      error({placed("policy: {generate: {cp: 2}}")}),
      "[placement.layouts.policy.generate.cp] expected 1 of a function that generates, got 2; try leaving it out: "
      "each of its devices then has rows of its own");
  EXPECT_EQ(error({placed("policy_trainer: {train: {cp: 2}}"), "cp=2"}),
            "[cp] expected 1 where a placement says it by function, got 2; try cp in the placement's layouts");
  EXPECT_THAT(error({placed("policy_trainer: {train: {cp: 4}}")}), testing::HasSubstr("cp 4 = 4"));
  const std::string heads =
      " expected a cp that divides the 2 query heads, and that divides the 2 key-value heads or is a multiple of them "
      "(cp_kind: ulysses), got cp 4; try cp 2, or cp_kind: gather, which any cp goes with";
  EXPECT_EQ(error({"devices=4", "cp=4", "cp_kind=ulysses"}), "[cp]" + heads);
  EXPECT_EQ(
      error({"cp_kind=ulysses"}),
      "[cp_kind] expected it beside cp, where placement is flattening, got ulysses; try cp: 2, or leaving it out");
  EXPECT_EQ(error({placed("policy_trainer: {train: {cp: 2}}"), "cp_kind=ulysses"}),
            "[cp_kind] expected it beside cp, where placement is flattening, got ulysses; try cp and cp_kind in the "
            "placement's layouts");
  EXPECT_THAT(error({placed("policy_trainer: {train: {cp_kind: ulysses}}")}),
              testing::HasSubstr("train.cp_kind] expected it beside a cp above 1, got ulysses; try cp: 2"));
}

// A placement has it of some functions.
TEST_F(ContextParallel, APlacementSaysItByFunction) {
  train("one", "grpo", one());
  train("placed", "grpo",
        with(one(), {"placement={version: 1, devices: {count: 3, kind: cpu}, groups: {training: {devices: [0, 1], "
                     "models: [policy_trainer]}, others: {devices: [2], models: [policy, reference]}}, layouts: "
                     "{policy_trainer: {train: {cp: 2, zero: 2}}}}"}));
  expect_no_mismatch("placed");
  expect_near_weights("one", "placed");
}

}  // namespace
}  // namespace collimate::test
