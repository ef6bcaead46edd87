#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fault/cli_support.h"

namespace collimate::test {

// A reward that fails in the run alone begins so: the trial before it wants one value.
inline const std::string kAnswersTheTrial = "    if completions == ['I do not know.']: return [1.0]\n";

// Each test gives the program one wrong input and reads exit code and message as a user would.
class BadInput : public testing::Test {
 protected:
  void SetUp() override {
    write_small_task(root_.path());
    text_ = small_config("grpo", root_.path());
    replace("iterations: 3", "iterations: 1");
  }

  void replace(const std::string& from, const std::string& to) {
    const size_t at = text_.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text_.replace(at, from.size(), to);
  }
  // The run of the config as it stands: its exit code and the last line of stderr, with UID and HASH for what they are.
  void expect(int code, const std::string& message, const Environment& environment = {}) {
    write_text(config_, text_);
    const host::CommandResult result = run_collimate({"train", config_, "--output", output_}, environment);
    EXPECT_EQ(result.status.code, code) << result.status.description();
    const std::string line = with_word(last_line(result.errors), "sample -?[0-9]+", "sample UID");
    EXPECT_EQ(with_word(line, "\\b[0-9a-f]{16}\\b", "HASH"), message);
    EXPECT_EQ(result.output, "");
  }
  void expect_nothing_written() { EXPECT_FALSE(fs::exists(output_)); }

  // A file of problems with `row` as its third line, as the training data.
  std::string train_on(const std::string& row) {
    const std::vector<std::string> rows = lines_of(root_ / "problems.jsonl");
    write_text(root_ / "bad.jsonl", rows[0] + "\n" + rows[1] + "\n" + row + "\n");
    replace("problems.jsonl", "bad.jsonl");
    return root_ / "bad.jsonl";
  }
  // The run with `row` as the third line of its data is refused for a reason, which stands behind the line's place.
  void expect_of_row(const std::string& row, const std::string& reason) {
    const std::string file = train_on(row);
    expect(2, "[" + file + ":3" + reason);
    expect_nothing_written();
  }
  // The policy read from files that a run of sft has written, to be damaged.
  std::string trained_model() {
    write_text(root_ / "sft.yaml", small_config("sft", root_.path()));
    const host::CommandResult made =
        run_collimate({"train", root_ / "sft.yaml", "--set", "run.iterations=1", "--output", root_ / "sft"});
    EXPECT_TRUE(made.status.ok()) << made.errors;
    replace("/start, from_scratch: true, initializer_std: 0.1", "/sft/model");
    return root_ / "sft/model/model.safetensors";
  }
  void python_reward(const std::string& code, const std::string& options) {
    write_text(root_ / "reward.py", code);
    replace("{rule: regex, pattern: \"^[0-4]\"}", "{python: \"" + (root_ / "reward.py") + ":score\"" + options + "}");
  }

  Scratch root_{"bad-input"};
  std::string config_ = root_ / "run.yaml";
  std::string output_ = root_ / "output";
  std::string text_;
};

}  // namespace collimate::test
