// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/check_call.h"

namespace collimate::test {
namespace {

// These tests ask `collimate check` about weights: of the data, and of models that leave their device.
class CheckWeights : public CheckCall {};

TEST_F(CheckWeights, EpochsAreOfTheRowsThatTheirWeightLetsIn) {
  for (const auto& [weight, end] : std::vector<std::pair<std::string, std::string>>{
           {"1", "0.6 epochs of 40\n"}, {"2", "0.3 epochs of 80\n"}, {"0.5", "1.2 epochs of 20\n"}}) {
    const auto result =
        check("sft", {"data.train={path: " + (root_ / "demonstrations.jsonl") + ", weight: " + weight + "}"});
    EXPECT_TRUE(result.status.ok()) << result.errors;
    EXPECT_THAT(result.output, testing::HasSubstr("\n# run: 3 iterations × 8 examples = 24, " + end));
  }
}

TEST_F(CheckWeights, SaysWhatModelsThatTakeTurnsPlanAndRefusesWhatHasNoneToTake) {
  const auto placement = [](const std::string& model) {
    return "placement={version: 1, devices: {count: 1, kind: cpu}, groups: {all: {devices: [0], models: [policy, "
           "policy_trainer]}}, residency: {" +
           model + ": swap}}";
  };
  EXPECT_THAT(check("grpo", {placement("policy")}).output,
              testing::ContainsRegex("# memory: device 0 plans [0-9.]+ MiB at a time, as its models take turns: "));
  EXPECT_THAT(
      reasons("grpo", {placement("policy"), "run.memory_budget=1"}),
      testing::ContainsRegex("\\[memory of worker 0\\] expected a plan of at most 1048576 bytes for .*, got [0-9]+ "
                             "\\(.*policy/"));
  const std::string two =
      "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {a: {devices: [0], models: [policy, "
      "policy_trainer]}, b: {devices: [1], models: [reference]}}, residency: {policy: swap}}";
  EXPECT_THAT(check("grpo", {"algorithm.beta=0.1", two}).output,
              testing::AllOf(testing::HasSubstr("# memory: device 0 plans "),
                             testing::Not(testing::HasSubstr("# memory: device 1 "))))
      << "nothing takes turns there";
  const std::string data = root_ / "demonstrations.jsonl";
  EXPECT_THAT(reasons("grpo", {placement("policy"), "run.swap_directory=" + data + "/away"}),
              testing::HasSubstr("[run.swap_directory] expected a directory in which files can be made, got " + data +
                                 "/away, as " + data + " is no directory; try "));
  EXPECT_THAT(reasons("grpo", {placement("reward")}),
              testing::HasSubstr(
                  "[placement.residency.reward] expected device of what has no weights, got swap; try leaving it "
                  "out: it takes no memory of a device\n"));
}

}  // namespace
}  // namespace collimate::test
