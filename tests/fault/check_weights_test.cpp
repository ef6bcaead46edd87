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
              testing::ContainsRegex("# memory: device 0 plans [0-9.]+ MiB at a time, as models take turns \\("));
  EXPECT_THAT(reasons("grpo", {placement("policy"), "run.memory_budget=1"}),
              testing::ContainsRegex("\\[memory of device 0\\] expected at most 1 MiB \\(run.memory_budget\\) while "
                                     ".*, got a plan of [0-9.]+ MiB \\(.*policy: "));
  const std::string two =
      "placement={version: 1, devices: {count: 2, kind: cpu}, groups: {a: {devices: [0], models: [policy, "
      "policy_trainer]}, b: {devices: [1], models: [reference]}}, residency: {policy: swap}}";
  EXPECT_THAT(check("grpo", {"algorithm.beta=0.1", two}).output,
              testing::AllOf(testing::ContainsRegex("# memory: device 0 plans [0-9.]+ MiB at a time"),
                             testing::ContainsRegex("# memory: device 1 plans [0-9.]+ [KM]iB \\(")))
      << "nothing takes turns on the second";
  const std::string data = root_ / "demonstrations.jsonl";
  EXPECT_THAT(reasons("grpo", {placement("policy"), "run.swap_directory=" + data + "/away"}),
              testing::HasSubstr("[run.swap_directory] expected a directory in which files can be made, got " + data +
                                 "/away, as " + data + " is no directory; try "));
  EXPECT_THAT(reasons("grpo", {placement("reward")}),
              testing::HasSubstr(
                  "[placement.residency.reward] expected device of what has no weights, got swap; try leaving it "
                  "out: it takes no memory of a device\n"));
}

// A run that check lets through begins, and the one that it refuses does not: for the same reason, in the same words.
TEST_F(CheckWeights, HoldsTheBudgetAgainstThePlanAsTheRunDoes) {
  const std::string two_stages = "pp=2";
  for (const auto& [recipe, sets] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"sft", {}}, {"grpo", {}}, {"dpo", {"devices=2", two_stages}}}) {
    std::vector<std::string> words = {"train", root_ / "run.yaml", "--output", root_ / "run"}, small = sets;
    small.emplace_back("run.memory_budget=1");
    const std::string refused = reasons(recipe, small);
    EXPECT_THAT(refused, testing::ContainsRegex("^\\[memory of device 0\\] expected at most 1 MiB "
                                                "\\(run.memory_budget\\), got a plan of [0-9.]+ MiB \\(.*policy: "));
    for (const std::string& set : small) words.insert(words.end(), {"--set", set});
    const host::CommandResult run = run_collimate(words);
    EXPECT_EQ(run.status.code, 2) << recipe;
    EXPECT_EQ(last_line(run.errors), last_line(refused)) << recipe;
    words.emplace_back("--dry-run");
    EXPECT_EQ(last_line(run_collimate(words).errors), last_line(refused)) << recipe;
    const std::string least = refused.substr(refused.find("try run.memory_budget: ") + 23);
    small.back() = "run.memory_budget=" + least.substr(0, least.find_first_not_of("0123456789"));
    EXPECT_THAT(shown(recipe, small), testing::ContainsRegex("# memory: device.* plans? [0-9.]+ MiB of [0-9]+ MiB"));
  }
}

}  // namespace
}  // namespace collimate::test
