// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/bad_input.h"

namespace collimate::test {
namespace {

TEST_F(BadInput, OutputDirectoryOfSomethingElse) {
  write_text(output_ + "/thesis.txt", "mine");
  expect(2, "[--output] expected a new directory or one of this run, got " + output_ +
                ", which holds other files; try another --output: collimate train " + config_ + " --output " + output_ +
                "-2");
  EXPECT_EQ(read_text(output_ + "/thesis.txt"), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(output_), fs::directory_iterator()), 1);
}

// The command in the message trains, whatever is beside the directory.
TEST_F(BadInput, TheCommandForAnotherOutputIsOneToType) {
  write_text(output_ + "/thesis.txt", "mine");
  fs::create_directories(output_ + "-2");
  write_text(config_, text_);
  const host::CommandResult refused =
      run_collimate({"train", config_, "--set", "run.seed=9", "--output", output_ + "/", "--resume", "never"});
  const std::string message = last_line(refused.errors), before = "another --output: ";
  ASSERT_NE(message.find(before), std::string::npos) << message;
  const std::string command = message.substr(message.find(before) + before.size());
  EXPECT_EQ(command, "collimate train " + config_ + " --set run.seed=9 --output " + output_ + "-3");
  const host::CommandResult made = run_words({"sh", "-c", COLLIMATE_BIN_DIR "/" + command}, {});
  EXPECT_TRUE(made.status.ok()) << made.errors;
  EXPECT_TRUE(fs::exists(output_ + "-3/model"));
}

TEST_F(BadInput, MisspeltPathsNameTheNearest) {
  const std::string config = root_ / "rum.yaml";
  write_text(config_, text_);
  EXPECT_EQ(last_line(run_collimate({"train", config, "--output", output_}).errors),
            "[" + config + "] expected a configuration file, got no such file; try " + config_ + ", which is there");
  replace("problems.jsonl", "problem.jsonl");
  expect(2, "[data " + (root_ / "problem.jsonl") + "] expected a file, got nothing of that name; try " +
                (root_ / "problems.jsonl") + ", which is there");
  replace("/start,", "/stort,");
  expect(2, "[model " + (root_ / "stort") + "] expected a model directory, got nothing of that name; try " +
                (root_ / "start") + ", which is there");
  expect_nothing_written();
}

// The run refuses as `check` does, before anything is made: with the columns that there are, and once.
TEST_F(BadInput, RewardsThatCannotJudgeAreRefusedBeforeTheRun) {
  python_reward("def score(prompts, completions, answer):\n    return [1.0] * len(prompts)\n", "");
  expect(
      2,
      "[reward score on " + (root_ / "problems.jsonl") +
          ":1] expected a reward, got TypeError: "
          "score(prompts, completions, answer) asks for answer, which the data does not have; the data has the columns "
          "ground_truth, prompt; try mending the reward, or the rows");
  expect_nothing_written();
  write_text(root_ / "reward.py", "def score(prompts, completions, **columns):\n    raise ValueError('broken')\n");
  const host::CommandResult result = run_collimate({"train", config_, "--output", output_});
  EXPECT_EQ(result.status.code, 2);
  const std::string error = "expected a reward, got ValueError: broken";
  const size_t first = result.errors.find(error);
  ASSERT_NE(first, std::string::npos) << result.errors;
  EXPECT_EQ(result.errors.find(error, first + 1), std::string::npos) << result.errors;
  EXPECT_THAT(result.errors, testing::HasSubstr("reward.py\", line 2, in score")) << "where it raised";
  EXPECT_EQ(result.errors.find("failed on"), std::string::npos) << result.errors;
  expect_nothing_written();
}

TEST_F(BadInput, RulesThatNameAColumnThatTheDataLacksAreRefusedBeforeTheRun) {
  replace("{rule: regex, pattern: \"^[0-4]\"}", "{rule: exact, field: answer}");
  expect(2, "[reward exact on data.train] expected rows that it can judge, got 72 of 72 that fail; " +
                (root_ / "problems.jsonl") +
                ":1: [reward] "
                "expected a column \"answer\" in the row, got none; the data has the columns ground_truth, prompt; try "
                "rows that have it (a data set's columns: {THEIRS: answer} renames one), or another rule");
  expect_nothing_written();
}

TEST_F(BadInput, OutputDirectoryThatCannotBeMade) {
  const std::string file = root_ / "thesis.txt";
  write_text(file, "mine");
  output_ = file + "/run";
  expect(2, "[--output] expected a directory that can be made, got " + output_ +
                ": Not a directory; try another --output");
  output_ = "/proc/collimate";
  expect(2,
         "[--output] expected a directory that can be made, got /proc/collimate: No such file or directory; try "
         "another --output");
  EXPECT_EQ(read_text(file), "mine");
}

TEST_F(BadInput, OutputDirectoryOfAnotherRun) {
  write_text(config_, text_);
  ASSERT_TRUE(run_collimate({"train", config_, "--output", output_}).status.ok());
  const std::string metrics = read_text(output_ + "/metrics.jsonl");
  replace("seed: 7", "seed: 8");
  expect(2, "[--output] expected a new directory or one of this run, got " + output_ +
                " of another config (run.seed: 7 -> 8); try the values that it began with, or --overwrite, which "
                "removes that run, or another --output: "
                "collimate train " +
                config_ + " --output " + output_ + "-2");
  EXPECT_EQ(read_text(output_ + "/metrics.jsonl"), metrics);
}

// The entries of rewards are written out with their defaults: a run that had others is another run.
TEST_F(BadInput, OutputDirectoryOfARunWithOtherDefaultsOfItsReward) {
  write_text(config_, text_);
  ASSERT_TRUE(run_collimate({"train", config_, "--output", output_}).status.ok());
  const std::string file = output_ + "/config.resolved.yaml", resolved = read_text(file);
  const std::string entry = "{on_error: stop, pattern: \"^[0-4]\", rule: regex, weight: 1.0}";
  const size_t at = resolved.find(entry);
  ASSERT_NE(at, std::string::npos) << resolved;
  const auto with_entry = [&](const std::string& other) {
    return std::string(resolved).replace(at, entry.size(), other);
  };
  write_text(file, with_entry("{on_error: stop, pattern: \"^[0-4]\", rule: regex, weight: 2.0}"));
  expect(2, "[--output] expected a new directory or one of this run, got " + output_ +
                " of another config (reward.0.weight: 2.0 -> 1.0); try the values that it began with, or --overwrite, "
                "which removes that run, or another --output: "
                "collimate train " +
                config_ + " --output " + output_ + "-2");
  write_text(file, with_entry("{rule: regex, pattern: \"^[0-4]\"}"));  // as earlier versions wrote it
  EXPECT_TRUE(run_collimate({"train", config_, "--output", output_}).status.ok());
}

}  // namespace
}  // namespace collimate::test
