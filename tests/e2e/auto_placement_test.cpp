#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <regex>

#include "collimate/recipe/config.h"
#include "tests/fault/cli_support.h"

namespace collimate::test {
namespace {

class AutoPlacement : public testing::Test {
 protected:
  static void SetUpTestSuite() { cache_ = std::make_unique<Scratch>("auto-placement-cache"); }
  static void TearDownTestSuite() { cache_.reset(); }
  void SetUp() override {
    write_small_task(scratch_.path());
    write_text(scratch_ / "run.yaml", small_config("grpo", scratch_.path()) + "placement: auto\ndevices: 2\n");
  }
  host::CommandResult train(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"train", scratch_ / "run.yaml", "--output", scratch_ / "run"});
    return run_collimate(more, {{"XDG_CACHE_HOME", cache_->path().string()}});
  }
  nlohmann::json placement() const { return recipe::load(scratch_ / "run/config.resolved.yaml", {}).placement.get(); }

  static std::unique_ptr<Scratch> cache_;  // the tests measure this machine once
  Scratch scratch_{"auto-placement"};
};
std::unique_ptr<Scratch> AutoPlacement::cache_;

// The machine is measured by the first run. What it found is read by the next ones, and by a plan that names the file.
TEST_F(AutoPlacement, IsThePlannersAndRecorded) {
  const host::CommandResult done = train();
  ASSERT_TRUE(done.status.ok()) << done.errors;
  std::smatch kept;
  const std::regex told(
      R"(s an iteration of rows as long as the config allows, by the planner's constants of this CPU, )"
      R"(measured in [0-9.]+ s and kept in (\S+))");
  ASSERT_TRUE(std::regex_search(done.errors, kept, told)) << done.errors;
  const std::string file = kept[1];
  const std::string content = read_text(file);
  for (const char* constant : {"train_efficiency", "score_efficiency", "decode_row_seconds", "host_row_seconds"})
    EXPECT_THAT(content, testing::HasSubstr(constant));
  const host::CommandResult planned =
      run_collimate({"plan", scratch_ / "run.yaml", "--json", "--constants", file, "--iterations", "1"});
  ASSERT_TRUE(planned.status.ok()) << planned.errors;
  const nlohmann::json chosen = nlohmann::json::parse(planned.output).at("plans").at(0).at("placement");
  EXPECT_EQ(placement().at("groups"), chosen.at("groups"));
}

// A run goes on where it is, whatever the planner would say now.
TEST_F(AutoPlacement, IsThatOfTheRunThatGoesOn) {
  write_text(scratch_ / "fast.yaml", "constants: {train_efficiency: 0.9}\n");
  ASSERT_TRUE(train().status.ok());
  const nlohmann::json before = placement();
  const host::CommandResult again = train({"--set", "placement={auto: " + (scratch_ / "fast.yaml") + "}"});
  EXPECT_TRUE(again.status.ok()) << again.errors;
  EXPECT_THAT(again.errors, testing::HasSubstr("placement: as in the run in "));
  EXPECT_EQ(placement(), before);
}

TEST_F(AutoPlacement, MeasuresAMachineOnceAndAgainWhereTheFileIsNone) {
  ASSERT_TRUE(train().status.ok());
  std::filesystem::remove_all(scratch_ / "run");
  EXPECT_THAT(train().errors, testing::HasSubstr("constants of this CPU, read from " + cache_->path().string()));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_->path()))
    if (entry.is_regular_file()) write_text(entry.path(), "constants: {train_efficiency: fast}\n");
  std::filesystem::remove_all(scratch_ / "run");
  const host::CommandResult again = train();
  EXPECT_TRUE(again.status.ok()) << again.errors;
  EXPECT_THAT(again.errors, testing::HasSubstr(" s and kept in " + cache_->path().string()));
}

// The placement alone is read of what a run has recorded: its plugins are not loaded, and run no code.
TEST_F(AutoPlacement, IsReadWithoutThePluginsOfTheRun) {
  write_text(scratch_ / "run/config.resolved.yaml",
             "recipe: gone\nplugins: [/nowhere/gone.py]\nplacement: {groups: []}\n");
  EXPECT_THAT(train().errors, testing::AllOf(testing::HasSubstr("placement: as in the run in "),
                                             testing::Not(testing::HasSubstr("gone.py"))));
}

// The search does not choose what the run would refuse, though it be faster; a budget in which nothing runs says what
// is missing.
TEST_F(AutoPlacement, KeepsToTheBudgetOfTheRun) {
  const std::vector<std::string> wide = {"--set", "rollout.samples_per_prompt=64"};  // needs more than a MiB
  const auto within = [&](int mebibytes) {
    std::vector<std::string> sets = wide;
    sets.insert(sets.end(), {"--set", fmt::format("run.memory_budget={}", mebibytes)});
    return train(sets);
  };
  const host::CommandResult refused = within(1);
  EXPECT_EQ(refused.status.code, 2);
  std::smatch needs;
  const std::regex text(
      R"(device [01] needs ([0-9.]+) MiB of 1 MiB \(run\.memory_budget\).*, of which .+ [0-9.]+ MiB)");
  ASSERT_TRUE(std::regex_search(refused.errors, needs, text)) << refused.errors;
  const int least = static_cast<int>(std::stod(needs[1].str())) + 1;  // MiB
  const host::CommandResult done = within(least);
  EXPECT_TRUE(done.status.ok()) << done.errors;
}

// Models that a device has no room for together take turns, with the bits of a run in which they stay.
TEST_F(AutoPlacement, TakesTurnsWhereTheBudgetHasNoRoomForAll) {
  const std::vector<std::string> one = {"--set", "devices=1", "--set", "algorithm.beta=0.04"};
  const auto of_one = [&](std::vector<std::string> more) {
    more.insert(more.begin(), one.begin(), one.end());
    return train(more);
  };
  ASSERT_TRUE(of_one({}).status.ok());
  EXPECT_TRUE(placement().at("residency").empty());
  const auto planned = [&] {
    const auto summary = nlohmann::json::parse(read_text(scratch_ / "run/summary.json"));
    return summary.at("memory").at("workers").at(0).at("planned_bytes").get<double>() / (1 << 20);
  };
  const double all = planned();
  const std::string model = read_text(scratch_ / "run/model/model.safetensors");
  std::filesystem::remove_all(scratch_ / "run");
  const host::CommandResult turns = of_one({"--set", fmt::format("run.memory_budget={}", static_cast<int>(all))});
  ASSERT_TRUE(turns.status.ok()) << turns.errors;
  EXPECT_THAT(turns.errors, testing::HasSubstr(" where policy, policy_trainer, reference take turns, as "));
  EXPECT_EQ(placement().at("residency").at("reference"), "swap");
  EXPECT_LT(planned(), all);
  EXPECT_TRUE(read_text(scratch_ / "run/model/model.safetensors") == model);
  EXPECT_THAT(read_text(scratch_ / "run/metrics.jsonl"), testing::HasSubstr("timing_s/swap"));
}

// Where no device holds its models whole, not even in turn, all layouts are looked at: micro-batches of a row, ZeRO 3,
// stages. The run has the bits of one without a budget.
TEST_F(AutoPlacement, SplitsModelsWhereNoneFitsWhole) {
  const std::string errors =
      run_collimate({"plan", scratch_ / "run.yaml", "--layouts", "dp", "--set", "run.memory_budget=1"}).errors;
  std::smatch needs;
  ASSERT_TRUE(std::regex_search(errors, needs, std::regex(R"(needs ([0-9.]+) MiB of 1 MiB)"))) << errors;
  const int budget = static_cast<int>(std::stod(needs[1].str()));  // MiB: less than what whole models need
  const host::CommandResult done = train({"--set", fmt::format("run.memory_budget={}", budget)});
  ASSERT_TRUE(done.status.ok()) << done.errors;
  EXPECT_THAT(done.errors, testing::HasSubstr(", with layouts of every kind, as whole models fit no device"));
  for (const nlohmann::json& worker :
       nlohmann::json::parse(read_text(scratch_ / "run/summary.json")).at("memory").at("workers"))
    EXPECT_LE(worker.at("planned_bytes").get<double>(), budget * double{1 << 20});
  const std::string model = read_text(scratch_ / "run/model/model.safetensors");
  ASSERT_TRUE(train({"--overwrite", "--set", "placement=flattening"}).status.ok());
  EXPECT_TRUE(read_text(scratch_ / "run/model/model.safetensors") == model);
}

TEST_F(AutoPlacement, WhatIsNoFileOfConstantsIsRefused) {
  EXPECT_EQ(train({"--set", "placement={auto: 3}"}).status.code, 2);
  const host::CommandResult missing = train({"--set", "placement={auto: none.yaml}"});
  EXPECT_EQ(missing.status.code, 2);
  EXPECT_THAT(missing.errors, testing::HasSubstr("none.yaml"));
}

}  // namespace
}  // namespace collimate::test
