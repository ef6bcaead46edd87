// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/check_call.h"

namespace collimate::test {
namespace {

using testing::HasSubstr;

// These tests read what `collimate check` says about data and rewards.
class CheckWords : public CheckCall {};

TEST_F(CheckWords, SaysWhoReadsOtherColumns) {
  write_text(root_ / "demonstrations.jsonl", "{\"prompt\": \"12=\", \"completion\": \"1\", \"level\": 3}\n");
  EXPECT_THAT(shown("sft"),
              HasSubstr("read as prompt (text), completion; other columns, which sft does not read: level\n"));
  write_text(root_ / "problems.jsonl", "{\"prompt\": \"12=\", \"ground_truth\": \"1\", \"level\": 3}\n");
  EXPECT_THAT(shown("grpo"), HasSubstr("ground truth; other columns, which rewards get: ground_truth, level\n"));
}

// Held-out rows are measured, and never trained on.
TEST_F(CheckWords, SaysThatHeldOutRowsAreMeasured) {
  const std::string told = shown("sft", {"data.eval=" + (root_ / "demonstrations.jsonl")});
  EXPECT_THAT(told, HasSubstr("# data.eval, example 1, row:\n#   masked      4 tokens  \"011=\"\n"
                              "#   measured    4 tokens  \"011<eos>\"\n#   EOS           measured: token 1\n"));
}

TEST_F(CheckWords, WarnsOfHeldOutRowsThatAreTrainedOn) {
  const std::string said = ": 40 of 40 rows stand in data.train too, and do not show how the model does on others\n";
  EXPECT_THAT(shown("sft", {"data.eval=" + (root_ / "demonstrations.jsonl")}),
              HasSubstr("# warning: data.eval" + said));
  EXPECT_THAT(shown("sft", {"data.val_size=5"}), testing::Not(HasSubstr("stand in data.train too")));
}

// Every recipe does so, also where a measure reads rows otherwise than the training does.
TEST_F(CheckWords, WarnsOfThemWhateverIsMeasured) {
  const auto own = [&](const std::string& file) { return "data.eval=" + (root_ / file); };
  for (const auto& [recipe, file] : std::initializer_list<std::pair<std::string, std::string>>{
           {"dpo", "pairs.jsonl"}, {"reward", "pairs.jsonl"}, {"kto", "marked.jsonl"}})
    EXPECT_THAT(shown(recipe, {own(file)}), HasSubstr(" rows stand in data.train too")) << recipe;
  EXPECT_THAT(shown("grpo", {own("problems.jsonl"), "reward=[{rule: exact}]"}),
              HasSubstr("# warning: data.eval: 72 of 72 rows stand in data.train too"));
  const std::string prompts = ": 40 of 40 prompts stand in data.train too, and do not show";
  EXPECT_THAT(shown("sft", {own("demonstrations.jsonl"),
                            "evaluation.measure=[{measure: completions, reward: [{rule: exact}], max_tokens: 4}]"}),
              HasSubstr(prompts));
  write_text(root_ / "exam.jsonl",
             "{\"prompt\": \"011=\", \"choices\": [\"011\", \"111\"], \"answer\": 0}\n"
             "{\"prompt\": \"7=\", \"choices\": [\"011\", \"111\"], \"answer\": 0}\n");
  EXPECT_THAT(shown("sft", {"evaluation.measure=[{measure: choices, data: " + (root_ / "exam.jsonl") + "}]"}),
              HasSubstr(": 1 of 2 prompts stand in data.train too"));
}

TEST_F(CheckWords, WarnsOfValuesThatAreFarFromWhatTrains) {
  EXPECT_THAT(shown("sft", {"train.learning_rate=1"}),
              HasSubstr("# warning: [train.learning_rate] expected at most about 0.12 for recipe sft and a model of "
                        "width 32, got 1: "));
  EXPECT_THAT(shown("sft", {"data.max_tokens=4096"}), HasSubstr("# warning: [data.max_tokens] expected at most the "));
}

// The option that draws too much is named, whatever the recipe draws itself.
TEST_F(CheckWords, NamesTheOptionThatDrawsMoreThanTheModelReads) {
  EXPECT_THAT(
      reasons("sft", {"data.eval=" + (root_ / "demonstrations.jsonl"),
                      "evaluation.measure=[{measure: completions, reward: [{rule: exact}], max_tokens: 4000}]"}),
      HasSubstr("; try shorter prompts or rows, or a smaller evaluation.measure.0.max_tokens\n"));
}

TEST_F(CheckWords, WarnsOfDataThatOneIterationReadsSeveralTimes) {
  write_text(root_ / "demonstrations.jsonl", "{\"prompt\": \"12=\", \"completion\": \"1\"}\n");
  EXPECT_THAT(shown("sft"),
              HasSubstr("# warning: an iteration reads 8 examples, and data.train has 1: each is read several "
                        "times in one iteration\n"));
}

// A config without rewards is told of the models that it has.
TEST_F(CheckWords, SaysByWhatGrpoJudges) {
  const std::string begins = "[reward] expected a list of rewards, by which recipe grpo judges completions, got none";
  EXPECT_THAT(
      reasons("grpo", {"reward=null"}),
      HasSubstr(begins + "; try reward: [{rule: exact}] or [{python: \"reward.py:score\"}], or models: {reward: "
                         "{path: DIRECTORY}}\n"));
  EXPECT_THAT(reasons("grpo", {"reward=null", "models.judge=" + (root_ / "start")}),
              HasSubstr(begins + " beside models.judge; "));
}

TEST_F(CheckWords, SaysWhoReadsTheStepsOfAnswers) {
  EXPECT_THAT(reasons("sft", {"data.step_separator=x"}),
              HasSubstr("[data.step_separator] expected an option that recipe sft reads, got \"x\"; try recipe: "
                        "process_reward, or algorithm.step_reward\n"));
  EXPECT_THAT(reasons("grpo", {"algorithm.step_reward=min"}), HasSubstr("[algorithm.step_reward] expected "));
  EXPECT_THAT(reasons("grpo", {"models.reward=" + (root_ / "start")}),
              HasSubstr("expected one judge of the samples: a list reward or a model, got both"));
  EXPECT_THAT(reasons("process_reward", {"data.train=" + (root_ / "pairs.jsonl")}),
              HasSubstr("got a pair of a chosen and a rejected answer, which recipe: dpo or reward reads"));
}

TEST_F(CheckWords, SaysHowADataSetOfAHubComesHere) {
  EXPECT_THAT(
      reasons("sft", {"data.train=openai/gsm8k"}),
      HasSubstr(
          "[data openai/gsm8k] expected a file or a directory of data files, as data sets of a hub are not "
          "downloaded, got nothing of that name; try hf download openai/gsm8k --repo-type dataset --local-dir gsm8k, "
          "and then the path of its files in gsm8k/\n"));
  fs::create_directories(root_ / "hub/datasets--openai--gsm8k");
  EXPECT_THAT(check("sft", {"data.train=openai/gsm8k"}, {{"HF_HUB_CACHE", root_ / "hub"}}).errors,
              HasSubstr("; try the path of its files, which Hugging Face's cache has in " +
                        (root_ / "hub/datasets--openai--gsm8k/snapshots")));
}

}  // namespace
}  // namespace collimate::test
