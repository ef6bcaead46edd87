#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/fault/bad_input.h"

namespace collimate::test {
namespace {

using testing::HasSubstr;

// A config was wrong, is corrected, and runs again into the same directory.
class Overwrite : public BadInput {
 protected:
  host::CommandResult train(std::vector<std::string> more = {}) {
    write_text(config_, text_);
    more.insert(more.begin(), {"train", config_, "--output", output_});
    return run_collimate(more);
  }
  void finish(const std::vector<std::string>& more = {}) {
    const host::CommandResult result = train(more);
    ASSERT_TRUE(result.status.ok()) << result.errors;
  }
  // A run of the same config that had never a predecessor has left the same.
  void expect_as_in_a_new_directory() {
    const std::string fresh = output_ + "-fresh";
    ASSERT_TRUE(run_collimate({"train", config_, "--output", fresh}).status.ok());
    EXPECT_EQ(lasting_metrics(output_), lasting_metrics(fresh));
    EXPECT_EQ(files_in(output_), files_in(fresh));
    EXPECT_EQ(read_text(output_ + "/model/model.safetensors"), read_text(fresh + "/model/model.safetensors"));
  }
  static std::set<std::string> files_in(const std::string& directory) {
    std::set<std::string> files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory))
      files.insert(fs::relative(entry.path(), directory).string());
    return files;
  }
};

// Nothing has been learned in it, so that the directory is free for the corrected config.
TEST_F(Overwrite, ARunThatEndedBeforeItsFirstIterationMakesWay) {
  const std::string config = text_;
  python_reward("def score(prompts, completions, **columns):\n" + kAnswersTheTrial + "    raise ValueError('broken')\n",
                "");
  EXPECT_EQ(train().status.code, 1);
  EXPECT_TRUE(fs::exists(output_ + "/config.resolved.yaml"));
  text_ = config;
  const host::CommandResult result = train();
  ASSERT_TRUE(result.status.ok()) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("removed: the run that was in " + output_ +
                                       ", which had another config and ended before an iteration was done\n"));
  expect_as_in_a_new_directory();
}

// With the same config there is nothing to remove: it begins again, as ever.
TEST_F(Overwrite, ARunThatEndedBeforeItsFirstIterationBeginsAgainWithItsConfig) {
  write_text(root_ / "broken", "");
  python_reward("import os\ndef score(prompts, completions, **columns):\n    if os.path.exists(" +
                    ("'" + (root_ / "broken") + "'") + "):\n    " + kAnswersTheTrial +
                    "        raise ValueError('broken')\n    return [float(len(c)) for c in completions]\n",
                "");
  EXPECT_EQ(train().status.code, 1);
  fs::remove(root_ / "broken");
  const host::CommandResult result = train();
  ASSERT_TRUE(result.status.ok()) << result.errors;
  EXPECT_THAT(result.errors, testing::Not(HasSubstr("removed: ")));
}

// Killed ahead of its first checkpoint, a run says by its lines that it did iterations: nobody is to lose them unasked.
TEST_F(Overwrite, ARunThatDidIterationsStaysThoughItSavedNothing) {
  finish();
  for (const char* left : {"summary.json", "model", "checkpoints"}) fs::remove_all(output_ + "/" + left);
  const std::string metrics = read_text(output_ + "/metrics.jsonl");
  const host::CommandResult refused = train({"--set", "train.learning_rate=3e-4"});
  EXPECT_EQ(refused.status.code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("--overwrite"));
  EXPECT_EQ(read_text(output_ + "/metrics.jsonl"), metrics);
}

TEST_F(Overwrite, RemovesTheRunAndNothingElse) {
  const std::vector<std::string> copies = {"--set", "log.tensorboard=true", "--set", "log.wandb=true", "--profile"};
  finish(copies);
  write_text(output_ + "/notes.txt", "mine");
  write_text(output_ + "/rows/train.jsonl", "{}");
  const std::set<std::string> before = files_in(output_);
  replace("seed: 7", "seed: 8");
  EXPECT_EQ(train(copies).status.code, 2);
  EXPECT_EQ(files_in(output_), before);
  const host::CommandResult result = train({"--overwrite"});
  ASSERT_TRUE(result.status.ok()) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("removed: the run that was in " + output_ + " (--overwrite)\n"));
  EXPECT_EQ(read_text(output_ + "/notes.txt"), "mine");
  EXPECT_EQ(read_text(output_ + "/rows/train.jsonl"), "{}");
  fs::remove(output_ + "/notes.txt");
  fs::remove_all(output_ + "/rows");
  expect_as_in_a_new_directory();
}

TEST_F(Overwrite, BeginsARunOfTheSameConfigAnew) {
  finish();
  const std::string metrics = read_text(output_ + "/metrics.jsonl");
  finish({"--overwrite"});
  EXPECT_NE(read_text(output_ + "/metrics.jsonl"), metrics) << "other times";
  EXPECT_EQ(lines_of(output_ + "/metrics.jsonl").size(), 1U);
}

TEST_F(Overwrite, IsNoWayToADirectoryThatHoldsNoRun) {
  write_text(output_ + "/model/weights.bin", "mine");
  const host::CommandResult result = train({"--overwrite"});
  EXPECT_EQ(result.status.code, 2);
  EXPECT_THAT(last_line(result.errors), HasSubstr("[--overwrite] expected a directory that holds a run, got " +
                                                  output_ + ", which holds other files; try another --output"));
  EXPECT_EQ(read_text(output_ + "/model/weights.bin"), "mine");
  fs::remove_all(output_);
  finish({"--overwrite"});  // of nothing
}

// Nothing is removed before all else is known to be right.
TEST_F(Overwrite, KeepsTheRunWhereTheNewOneCannotBegin) {
  finish();
  const std::set<std::string> before = files_in(output_);
  const auto expect_refused = [&](const std::vector<std::string>& more, const std::string& message) {
    std::vector<std::string> words = {"--overwrite"};
    words.insert(words.end(), more.begin(), more.end());
    const host::CommandResult result = train(words);
    EXPECT_EQ(result.status.code, 2);
    EXPECT_THAT(last_line(result.errors), HasSubstr(message));
    EXPECT_EQ(files_in(output_), before);
  };
  const std::string removed = " expected nothing of the run in " + output_ + ", which is to be removed, got " + output_;
  expect_refused({"--set", "models.policy={path: " + output_ + "/model}"},
                 "[models.policy.path]" + removed + "/model; try another --output, or a copy of it outside");
  expect_refused({"--set", "data.train=" + output_ + "/samples/step-000001.jsonl"}, "[data.train]" + removed);
  expect_refused({"--set", "models.policy={path: " + output_ + "/../output/./model}"}, "[models.policy.path]");
  expect_refused({"--replay", output_ + "/journal.bin"}, "[--replay]" + removed);
  expect_refused({"--resume", output_}, "[--resume] expected another run than the one that --overwrite removes");
  expect_refused({"--resume", output_ + "/checkpoints/step-000001"}, "[--resume]");
  expect_refused({"--resume", root_ / "none"}, "[--resume] expected the directory of a run of this config");
  expect_refused({"--set", "data.train=" + (root_ / "none.jsonl")}, "none.jsonl");
}

}  // namespace
}  // namespace collimate::test
