#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "collimate/recipe/check.h"
#include "tests/e2e/run_support.h"
#include "tests/support/base/error_of.h"

namespace collimate::test {
namespace {

using base::message_of;
using testing::Contains;
using testing::HasSubstr;

// Runs whose held-out rows are a part of data.train.
class HeldOutSplit : public OnSmallTask {
 protected:
  HeldOutSplit() : OnSmallTask("held-out-split") {}

  recipe::TrainOutcome run(const std::string& output, const std::vector<std::string>& more) {
    std::vector<std::string> sets = {"data.val_size=0.25", "run.samples_every=1"};
    sets.insert(sets.end(), more.begin(), more.end());
    return train_text(small_config("grpo", scratch_.path()), scratch_ / output, sets);
  }
  // Returns the prompts of the files of samples whose names begin with `files`, in order.
  std::vector<std::string> prompts(const std::string& output, const std::string& files) {
    std::set<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(scratch_ / (output + "/samples")))
      if (entry.path().filename().string().starts_with(files)) paths.insert(entry.path());
    std::vector<std::string> found;
    for (const fs::path& path : paths)
      for (const std::string& line : lines_of(path)) found.push_back(nlohmann::json::parse(line).at("prompt"));
    return found;
  }
};

TEST_F(HeldOutSplit, IsDrawnByTheSeedAndNeverTrainedOn) {
  const auto rows = static_cast<size_t>(lines_of(scratch_ / "problems.jsonl").size());
  run("first", {"run.iterations=8"});
  const std::vector<std::string> drawn = prompts("first", "eval-000000");
  const std::set<std::string> held_out(drawn.begin(), drawn.end());
  EXPECT_EQ(drawn.size(), rows / 4);
  const std::vector<std::string> trained = prompts("first", "step-");
  EXPECT_GT(std::set<std::string>(trained.begin(), trained.end()).size(), 20U);
  for (const std::string& prompt : trained) EXPECT_FALSE(held_out.contains(prompt)) << prompt;
  run("second", {"run.iterations=1"});
  EXPECT_EQ(prompts("second", "eval-000000"), drawn);
  run("other", {"run.iterations=1", "run.seed=8"});
  EXPECT_NE(prompts("other", "eval-000000"), drawn);
}

TEST_F(HeldOutSplit, ARunThatGoesOnKeepsIt) {
  run("parts", {"run.iterations=2"});
  const auto parts = run("parts", {"run.iterations=4"}), whole = run("whole", {"run.iterations=4"});
  EXPECT_EQ(parts.last_evaluation, whole.last_evaluation);
  EXPECT_EQ(prompts("parts", "eval-000004"), prompts("whole", "eval-000004"));
  EXPECT_EQ(model_bytes(scratch_ / "parts"), model_bytes(scratch_ / "whole"));
  EXPECT_THAT(message_of([&] {
                run("parts", {"run.iterations=6", "data.val_size=3"});
              }),
              HasSubstr("(data.val_size: 0.25 -> 3.0)"));
}

// The end of a shorter run is no place where the longer one evaluates: its line stays, with what was measured there.
TEST_F(HeldOutSplit, ALongerRunKeepsTheLineOfTheEarlierEnd) {
  run("longer", {"run.evaluate_every=2", "run.iterations=3"});
  const std::string ended = lines_of(scratch_ / "longer/metrics.jsonl").back();
  run("longer", {"run.evaluate_every=2", "run.iterations=5"});
  const std::vector<std::string> lines = lines_of(scratch_ / "longer/metrics.jsonl");
  ASSERT_EQ(lines.size(), 6U);  // and the one before the first iteration
  EXPECT_EQ(lines[3], ended);
  EXPECT_THAT(ended, HasSubstr("\"val/accuracy\""));
  const auto summary = nlohmann::json::parse(read_text(scratch_ / "longer/summary.json"));
  EXPECT_EQ(summary.at("iterations"), 5);
}

TEST_F(HeldOutSplit, CheckShowsIt) {
  write_text(scratch_ / "a.yaml", small_config("grpo", scratch_.path()));
  const auto lines = [&](const std::string& size) {
    return recipe::check(recipe::load(scratch_ / "a.yaml", {"data.val_size=" + size})).lines;
  };
  EXPECT_THAT(lines("5"),
              Contains("data.eval: 5 of the 72 rows of data.train, drawn by run.seed, which are not trained "
                       "on (data.val_size)"));
  EXPECT_THAT(lines("0.001"), Contains(HasSubstr("data.eval: 1 of the 72 rows")));
}

TEST_F(HeldOutSplit, WhatLeavesNoRowsIsRefused) {
  const auto refused = [&](const std::vector<std::string>& sets) {
    return message_of([&] { train_text(small_config("grpo", scratch_.path()), scratch_ / "refused", sets); });
  };
  EXPECT_EQ(refused({"data.val_size=0.25", "data.eval=" + (scratch_ / "held_out.jsonl")}),
            "[data.val_size] expected nothing beside data.eval, which is the held-out data, got 0.25; try one of the "
            "two");
  for (const char* size : {"72", "1.5"})
    EXPECT_EQ(refused({fmt::format("data.val_size={}", size)}),
              fmt::format("[data.val_size] expected a share below 1, or fewer than the 72 rows of data.train, got {}; "
                          "try 0.05",
                          size));
  EXPECT_FALSE(fs::exists(scratch_ / "refused"));
  EXPECT_THAT(refused({"data.test_size=0.1"}), HasSubstr("data.val_size"));
}

}  // namespace
}  // namespace collimate::test
