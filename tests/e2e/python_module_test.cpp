#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collimate/base/deadline.h"
#include "tests/e2e/run_support.h"
#include "tests/support/host/run_command.h"

namespace collimate::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The flow and module of examples/python_module.py beside those of examples/own_flow, which are the same in C++.
class PythonModule : public OnSmallTask {
 protected:
  PythonModule() : OnSmallTask("python-module") {}

  host::CommandResult train(const std::string& output, const std::string& recipe, const std::string& plugin,
                            const std::vector<std::string>& sets = {}) {
    std::string text = small_config("grpo", scratch_.path());
    text.replace(text.find("grpo"), 4, recipe);
    write_text(scratch_ / (recipe + ".yaml"), text + "plugins: [" + plugin + "]\n");
    std::vector<std::string> words = {COLLIMATE_BIN_DIR "/collimate", "train", scratch_ / (recipe + ".yaml"),
                                      "--output", scratch_ / output};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    return host::run_command({.command = std::move(words)}, "", base::Deadline::after(120));
  }
  // The example with `to` in the place of `from`.
  std::string changed(const std::string& from, const std::string& to) {
    std::string text = read_text(kExample);
    EXPECT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
    write_text(scratch_ / "changed.py", text);
    return scratch_ / "changed.py";
  }
  static constexpr const char* kExample = COLLIMATE_SOURCE_DIR "/examples/python_module.py";
  static constexpr const char* kRecipe = "novelty_in_python";
};

TEST_F(PythonModule, TrainsToTheBitsOfTheSameInCpp) {
  const host::CommandResult cpp = train("cpp", "novelty", COLLIMATE_BIN_DIR "/own_flow.so");
  ASSERT_TRUE(cpp.status.ok()) << cpp.errors;
  const host::CommandResult python = train("python", kRecipe, kExample);
  ASSERT_TRUE(python.status.ok()) << python.errors;
  EXPECT_EQ(model_bytes(scratch_ / "python"), model_bytes(scratch_ / "cpp"));
  EXPECT_EQ(metrics_of(scratch_ / "python").back().at("novelty/answers"),
            metrics_of(scratch_ / "cpp").back().at("novelty/answers"));
  const host::CommandResult apart = train("apart", kRecipe, kExample, {"cluster=local-processes"});
  ASSERT_TRUE(apart.status.ok()) << apart.errors;
  EXPECT_EQ(model_bytes(scratch_ / "apart"), model_bytes(scratch_ / "cpp"));
}

TEST_F(PythonModule, GoesOnFromWhatItSaved) {
  ASSERT_TRUE(train("whole", kRecipe, kExample).status.ok());
  ASSERT_TRUE(train("parts", kRecipe, kExample, {"run.iterations=1"}).status.ok());
  ASSERT_TRUE(train("parts", kRecipe, kExample).status.ok());
  EXPECT_EQ(metrics_of(scratch_ / "parts").back().at("novelty/answers"),
            metrics_of(scratch_ / "whole").back().at("novelty/answers"));
}

TEST_F(PythonModule, WhatItRaisesEndsTheRunWithItsLines) {
  const host::CommandResult raised =
      train("raised", kRecipe, changed("rewards.append(reward - self.weight * before)", "rewards.append(1 / before)"));
  EXPECT_EQ(raised.status.code, 1);
  EXPECT_THAT(raised.errors, AllOf(HasSubstr("ZeroDivisionError: division by zero"), HasSubstr("in score"),
                                   HasSubstr("rewards.append(1 / before)"), HasSubstr("counts.score")));
  const host::CommandResult fewer =
      train("fewer", kRecipe, changed("{\"reward\": rewards,", "{\"reward\": rewards[1:],"));
  EXPECT_THAT(fewer.errors, HasSubstr("column 'reward' has 15 values, and there are 16 rows"));
}

// Numbers of one kind and of the other, of a column that is declared and of one that is known.
TEST_F(PythonModule, ColumnsHaveTheTypesOfTheirDeclarations) {
  const std::string file = changed("needs=[\"uid\", \"ids\", \"reward\"], makes=[\"reward\"], each=\"iteration\"",
                                   "needs=[\"uid\", \"ids\"], makes=[\"reward\", \"bonus\", \"order:i64\"]");
  std::string text = read_text(file);
  const size_t begin = text.find("        rewards = []"), end = text.find("    def save");
  text.replace(begin, end - begin,
               "        count = len(rows)\n"
               "        bonus = [1] * count if rows[\"uid\"][0] % 2 else [0.5] * count\n"
               "        return {\"reward\": [i % 2 for i in range(count)], \"bonus\": bonus,\n"
               "                \"order\": list(range(count)), \"metrics\": {\"none\": float(\"nan\")}}\n\n");
  const size_t score = text.find("counts(\"score\", reward(\"score\", page.samples(policy, prompts)))");
  ASSERT_NE(score, std::string::npos);
  text.replace(score, text.find('\n', score) - score, "counts(\"score\", page.samples(policy, prompts))");
  write_text(scratch_ / "typed.py", text);
  const host::CommandResult typed = train("typed", kRecipe, scratch_ / "typed.py");
  ASSERT_TRUE(typed.status.ok()) << typed.errors;
  EXPECT_EQ(metrics_of(scratch_ / "typed").back().at("critic/rewards/max"), 1.0);
}

// A call that never ends is killed, with its process, when the run's deadline has passed.
TEST_F(PythonModule, IsKilledPastTheDeadline) {
  const host::CommandResult endless =
      train("endless", kRecipe, changed("        rewards = []\n", "        while True:\n            pass\n"),
            {"run.deadline_seconds=5"});
  EXPECT_EQ(endless.status.code, 1);
  EXPECT_FALSE(endless.timed_out);
  EXPECT_THAT(endless.errors, HasSubstr("5 s"));
}

TEST_F(PythonModule, MethodsAreCheckedBeforeARun) {
  EXPECT_THAT(train("missing", kRecipe, changed("def score(", "def scores(")).errors,
              HasSubstr("[collimate.module] expected methods of Counts, got score"));
  EXPECT_THAT(train("taken", kRecipe, changed("\"counts_in_python\", score", "\"scorer\", score")).errors,
              HasSubstr("[register_module] expected a name that is free, got \"scorer\" again"));
  EXPECT_THAT(train("half", kRecipe, changed("def load(", "def loads(")).errors,
              HasSubstr("[collimate.module] expected both save and load in Counts, got one of them"));
  EXPECT_THAT(train("typed", kRecipe, changed("makes=[\"reward\"]", "makes=[\"reward:f64\"]")).errors,
              HasSubstr("expected the type of a column to be one of u8, i16, i32, i64, f32, json, got 'reward:f64'"));
}

}  // namespace
}  // namespace collimate::test
