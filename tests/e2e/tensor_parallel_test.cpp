#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/near_runs.h"
#include "tests/support/small_families.h"

// Devices that share the matrices of every model, against one device whose sums are cut as often as there are devices.
namespace collimate::test {
namespace {

class TensorParallel : public NearRuns {
 protected:
  static std::vector<std::string> one() { return with(NearRuns::one(), {"models.policy.reduction_chunks=2"}); }
  static std::vector<std::string> shared() { return with(one(), {"devices=2", "tp=2"}); }
};

TEST_F(TensorParallel, GrpoIsThatOfOneDeviceButForTheOrderOfSums) {
  train("one", "grpo", one());
  const std::string threads = train("threads", "grpo", shared());
  train("pairs", "grpo", with(one(), {"devices=4", "tp=2"}));
  EXPECT_TRUE(threads == train_apart("processes", "grpo", shared()));
  EXPECT_EQ(lasting_metrics(directory("threads")), lasting_metrics(directory("processes")));
  for (const char* name : {"threads", "pairs"}) {
    expect_no_mismatch(name);
    expect_near_run("one", name);
  }
}

// Gradients of both trained models, of the first update.
TEST_F(TensorParallel, PposFirstUpdateIsThatOfOneDevice) {
  auto sets = with_reward_model({"models.policy.reduction_chunks=2", "run.iterations=1"});
  sets.push_back("models.value={reduction_chunks: 2, path: " + directory("judge") + "/model}");
  train("one", "ppo", sets);
  train("shared", "ppo", with(sets, {"devices=2", "tp=2"}));
  expect_no_mismatch("shared");
  for (const std::string model : {"policy_trainer", "value"}) {
    const SavedValues expected = first_gradients(directory("one"), model),
                      given = first_gradients(directory("shared"), model, 2);
    EXPECT_GT(expected.size(), 10U);
    for (const auto& [name, gradient] : expected) {
      const auto [distance, norm] = distance_and_norm(gradient, given.at(name));
      EXPECT_LE(distance, 1e-5 * norm) << model << " " << name;
    }
  }
}

TEST_F(TensorParallel, ARunThatWasCutGoesOnWithTheSameBits) { expect_goes_on("whole", "grpo", shared()); }

// A checkpoint of pieces goes on whole, and one of whole models in pieces.
TEST_F(TensorParallel, ARunGoesOnOnOtherDevices) {
  train("one", "grpo", one());
  train_in_two("joined", "grpo", shared(), one());
  train_in_two("parted", "grpo", one(), shared());
  for (const char* name : {"joined", "parted"}) expect_near_run("one", name);
}

TEST_F(TensorParallel, ExpertsAndAdaptersAreSharedToo) {
  write_small_model_of("deepseek_v3", scratch_ / "start");
  train("one", "grpo", one());
  train("shared", "grpo", shared());
  expect_no_mismatch("shared");
  expect_near_run("one", "shared");
  const std::vector<std::string> lora = {"models.policy.lora.rank=2"};
  train("adapters", "grpo", with(one(), lora));
  train("shared-adapters", "grpo", with(shared(), lora));
  expect_no_mismatch("shared-adapters");
  expect_near_run("adapters", "shared-adapters");
  EXPECT_EQ(read_text(directory("adapters") + "/model/adapter/adapter_config.json"),
            read_text(directory("shared-adapters") + "/model/adapter/adapter_config.json"));
}

TEST_F(TensorParallel, EachDeviceTakesWhatIsPlanned) {
  train("one", "grpo", one());
  train("shared", "grpo", shared());
  for (const std::string item : {"policy/master", "policy/gradient", "policy/optimizer", "kv_cache"})
    EXPECT_LT(taken_bytes(directory("shared"), item), 0.75 * taken_bytes(directory("one"), item)) << item;
}

TEST_F(TensorParallel, SizesThatDoNotFitAreNamed) {
  const auto error = [&](const std::vector<std::string>& sets) { return refusal("grpo", with(one(), sets)); };
  expect_axis_is_checked("tp");
  EXPECT_THAT(error({"devices=4", "tp=4"}), testing::HasSubstr("a tp that divides the model's 2 attention heads"));
  const std::string placement = placed("policy: {generate: {tp: 2}}");
  EXPECT_THAT(error({placement, "rollout.kv_cache_dtype=int8"}),
              testing::HasSubstr("one tp for all functions of models that share weights"));
  EXPECT_THAT(error({placement, "tp=2"}), testing::HasSubstr("tp in the placement's layouts"));
  EXPECT_THAT(error({placement, "models.policy.reduction_chunks=1"}),
              testing::HasSubstr("[models.policy.reduction_chunks] expected a multiple of tp 2 of policy.generate and "
                                 "of tp 1 of policy_trainer.train"));
}

}  // namespace
}  // namespace collimate::test
