// GCC 12 sees an overlap in std::string's replace where there is none (GCC bug 105651).
#pragma GCC diagnostic ignored "-Wrestrict"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fault/check_call.h"

namespace collimate::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// Each test runs `collimate check` on a config with rewards and looks at what it prints about them.
class CheckRewards : public CheckCall {
 protected:
  std::string first_row() const { return (root_ / "problems.jsonl") + ":1"; }
};

TEST_F(CheckRewards, RefusesRewardsThatCannotJudge) {
  EXPECT_THAT(reasons("grpo", {"reward=[{python: \"" + (root_ / "none.py") + ":score\"}]"}),
              HasSubstr("got no file " + (root_ / "none.py")));
  write_text(root_ / "rewards/mine.py", "def score(prompts, completions, **kw):\n    return [0.0] * len(prompts)\n");
  EXPECT_THAT(reasons("grpo", {"reward=[{python: \"" + (root_ / "rewards") + "\"}]"}),
              HasSubstr("; try one that is there: " + (root_ / "rewards/mine.py") + "\n"));
  EXPECT_THAT(reasons("grpo", {"reward=[{rule: exact, feild: x}]"}),
              HasSubstr("[--set reward] expected a key of section reward.0, got \"feild\"; try \"field\"\n"));
  EXPECT_THAT(reasons("grpo", {"reward=reward.py:score"}), HasSubstr("; try {python: \"reward.py:score\"}\n"));
  EXPECT_THAT(reasons("grpo", {"reward=[{rule: gsm9k}]"}),
              ContainsRegex("\\[--set reward\\] expected a rule, one of gsm8k, .*, got 'gsm9k'; try 'gsm8k'\n"));
  replace_in(root_ / "problems.jsonl", ", \"ground_truth\": \"149\"", "");
  const std::string row = "[reward exact on data.train] expected rows that it can judge, got 1 of 72 that fail; " +
                          (root_ / "problems.jsonl") + ":1: ";
  EXPECT_THAT(reasons("grpo", {"reward=[{rule: exact}]"}), HasSubstr(row));
  EXPECT_THAT(shown("grpo", {"reward=[{rule: exact, on_error: drop}]"}),
              HasSubstr("\n# reward exact on data.train: 1 of 72 rows fail, and on_error decides what they count; " +
                        (root_ / "problems.jsonl") + ":1: "));
}

TEST_F(CheckRewards, RefusesRewardsThatAreNoMaps) {
  const std::string message =
      "[--set reward] expected {rule: NAME}, {function: NAME}, {python: FILE.py:function}, {gym: FILE.py:Class}, "
      "{http: "
      "URL} or {judge: URL, model: NAME}, got \"exact\"; try {rule: exact}\n";
  for (const char* value : {"reward=exact", "reward=[exact]", "reward=[{rule: exact}, exact]"})
    EXPECT_THAT(reasons("grpo", {value}), HasSubstr(message)) << value;
  EXPECT_THAT(reasons("grpo", {"reward=[{python: a.py, deterministic: maybe}]"}),
              HasSubstr("[--set reward] expected reward.0.deterministic to be true or false, got \"maybe\"\n"));
}

TEST_F(CheckRewards, SaysWhatTheGroundTruthItselfGets) {
  EXPECT_THAT(shown("grpo", {"reward=[{rule: exact}]"}),
              HasSubstr("\n# reward exact on data.train: the ground truth as completion gets 1 on average\n"));
  // Rewards of the evaluation are asked about its rows.
  const std::string own =
      shown("grpo", {"evaluation.reward=[{rule: exact}]", "data.eval=" + (root_ / "held_out.jsonl")});
  EXPECT_THAT(own, HasSubstr("\n# reward exact on data.eval: the ground truth as completion gets 1 on average\n"));
  EXPECT_THAT(own, testing::Not(HasSubstr("reward exact on data.train")));
}

// Before anything trains, the user sees what each reward gives to a few completions; a Python function is called too.
TEST_F(CheckRewards, CallsEachRewardOnAFewCompletions) {
  EXPECT_THAT(
      shown("grpo", {"reward=[{rule: exact}]"}),
      HasSubstr("\n# reward exact on " + first_row() + ": \"149\" gets 1, \"I do not know.\" gets 0, \"\" gets 0\n"));
  write_text(root_ / "r.py",
             "def score(prompts, completions, ground_truth, **kw):\n"
             "    return [int(c) / 2 for c in completions]\n"
             "def never(completions, **kw):\n"
             "    raise KeyError('answer')\n");
  EXPECT_THAT(shown("grpo", {"reward=[{python: '" + (root_ / "r.py:score") + "'}]"}),
              HasSubstr("\n# warning: reward score on " + first_row() +
                        ": \"149\" gets 74.5, \"I do not know.\" gets the "
                        "error ValueError: invalid literal for int() with base 10: 'I do not know.'"));
  EXPECT_THAT(reasons("grpo", {"reward=[{python: '" + (root_ / "r.py:never") + "'}]"}),
              HasSubstr("[reward never on " + first_row() +
                        "] expected a reward, got "
                        "KeyError: 'answer'; the data has the columns ground_truth, prompt; try mending the reward, or "
                        "the rows\n"));
}

// A run has another number of samples than a trial: a function that returns one number of values, whatever it is given,
// is found in the trial.
TEST_F(CheckRewards, RefusesAFunctionThatReturnsAFixedNumberOfRewards) {
  write_text(root_ / "problems.jsonl", "{\"prompt\": \"12=\"}\n");  // no answer to try
  for (int count = 1; count < 4; ++count) {
    write_text(root_ / "r.py",
               "def score(prompts, completions, **kw):\n    return [1.0] * " + std::to_string(count) + "\n");
    EXPECT_THAT(
        reasons("grpo", {"reward=[{python: '" + (root_ / "r.py:score") + "'}]"}),
        ContainsRegex("\\[reward score on .*\\] expected a list with a reward for each completion, got the function "
                      "returned [0-9] rewards? for [0-9] samples?; try returning as many numbers as there are "
                      "completions\n"))
        << count;
  }
  write_text(root_ / "r.py", "def score(prompts, completions, **kw):\n    sum(len(c) for c in completions)\n");
  EXPECT_THAT(reasons("grpo", {"reward=[{python: '" + (root_ / "r.py:score") + "'}]"}),
              HasSubstr("; try a return at the end of the function, with a list of as many numbers as there are "
                        "completions\n"));
  write_text(root_ / "r.py", "import time\ndef score(prompts, completions, **kw):\n    time.sleep(60)\n");
  EXPECT_THAT(
      reasons("grpo", {"reward=[{python: '" + (root_ / "r.py:score") + "', timeout_seconds: 0.2}]"}),
      HasSubstr("] expected a reward in time, got no answer within 0.2 s; try a larger timeout_seconds in its entry"));
}

TEST_F(CheckRewards, SaysInWordsWhyAFunctionGivesNothing) {
  const auto said = [&](const std::string& body) {
    write_text(root_ / "r.py", "import sys\ndef score(prompts, completions, **kw):\n    " + body + "\n");
    return reasons("grpo", {"reward=[{python: '" + (root_ / "r.py:score") + "'}]"});
  };
  EXPECT_THAT(said("sys.exit(3)"),
              HasSubstr("] expected a reward, got none: the function's process ended with exit code 3; try a function "
                        "that returns and does not end Python, as sys.exit does\n"));
  EXPECT_THAT(said("return ['good'] * len(completions)"),
              HasSubstr("] expected a reward, got 'good' in the place of a number; the data has the columns "));
  EXPECT_THAT(said("return open('/nowhere.txt').read()"),
              HasSubstr("; try readable: [FILE] in its entry if the file exists, as the sandbox shows the function few "
                        "files\n"));
}

// A function of one sample may be slow, or cost money: nothing is learned of its list, and it gives none.
TEST_F(CheckRewards, AsksAFunctionOfOneSampleOnceAboutEachCompletion) {
  write_text(root_ / "r.py",
             "calls = 0\n"
             "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
             "    global calls\n    calls += 1\n    return calls\n"
             "def score(prompts, completions, **kw):\n    return [len(prompts)] * len(prompts)\n");
  const std::string with = "reward=[{python: '" + (root_ / "r.py:");
  EXPECT_THAT(shown("grpo", {with + "compute_score'}]"}),
              HasSubstr("\"149\" gets 1, \"I do not know.\" gets 2, \"\" gets 3\n"));
  EXPECT_THAT(shown("grpo", {with + "score'}]"}), HasSubstr("\"149\" gets 5, ")) << "a list may be of a wrong length";
}

// One function judges both data sets, and raises the same there.
TEST_F(CheckRewards, ShowsATracebackOnceForAllDataSets) {
  write_text(root_ / "r.py", "def never(completions, **kw):\n    raise KeyError('answer')\n");
  const std::string never = "[{python: '" + (root_ / "r.py:never") + "'}]";
  const std::string said =
      reasons("grpo", {"reward=" + never, "data.eval=" + (root_ / "held_out.jsonl"), "evaluation.reward=" + never});
  const size_t first = said.find("r.py\", line 2, in never");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("r.py\", line 2, in never", first + 1), std::string::npos) << said;
  const std::string problem = ":1] expected a reward, got KeyError";
  const size_t told = said.find(problem);
  ASSERT_NE(told, std::string::npos) << said;
  EXPECT_EQ(said.find(problem, told + 1), std::string::npos) << "the same error is told once: " << said;
}

// A run would stop at its first sample.
TEST_F(CheckRewards, RefusesRewardsOfWhichNoneJudges) {
  write_text(root_ / "r.py",
             "def nothing(prompts, completions, **kw):\n    return [None] * len(prompts)\n"
             "def some(prompts, completions, **kw):\n    return [1.0 if c == '149' else None for c in completions]\n");
  const std::string nothing = "{python: '" + (root_ / "r.py:nothing") + "'}";
  EXPECT_THAT(reasons("grpo", {"reward=[" + nothing + "]"}),
              HasSubstr("[reward on " + first_row() +
                        "] expected a reward of nothing for some completion, got no "
                        "judgement (None) of any in the first "));
  // A reward is asked about later rows where it does not judge the first.
  write_text(root_ / "later.py",
             "def later(prompts, completions, ground_truth, **kw):\n"
             "    return [None if t == '149' else 0.0 for t in ground_truth]\n");
  shown("grpo", {"reward=[{python: '" + (root_ / "later.py:later") + "'}]"});
  shown("grpo", {"reward=[" + nothing + ", {python: '" + (root_ / "r.py:some") + "'}]"});
  shown("grpo", {"reward=[" + nothing + ", {rule: exact}]"});
}

// Rules compare with the text of any value.
TEST_F(CheckRewards, AsksAboutGroundTruthsThatAreNoTexts) {
  write_text(root_ / "problems.jsonl",
             "{\"prompt\": \"1=\", \"ground_truth\": \"1\"}\n{\"prompt\": \"2=\", \"ground_truth\": 2}\n"
             "{\"prompt\": \"3=\", \"ground_truth\": [3, 0.5]}\n");
  EXPECT_THAT(shown("grpo", {"reward=[{rule: exact}]", "rollout.prompts_per_iteration=1"}),
              HasSubstr("\n# reward exact on data.train: the ground truth as completion gets 1 on average\n"));
}

// Messages and metrics tell several of one name apart.
TEST_F(CheckRewards, NamesRewardsOfOneNameApart) {
  const std::string text =
      shown("grpo", {"reward=[{rule: regex, pattern: \"^[0-9]\"}, {rule: regex, pattern: \"^a\"}]"});
  EXPECT_THAT(text, HasSubstr("\n# reward regex on data.train: the ground truth as completion gets 1 on average\n"));
  EXPECT_THAT(text, HasSubstr("\n# reward regex_2 on data.train: the ground truth as completion gets 0 on average\n"));
}

TEST_F(CheckRewards, RefusesRewardsThatARecipeDoesNotAsk) {
  for (const char* recipe : {"sft", "reward", "dpo"})
    for (const char* key : {"reward", "evaluation.reward"})
      EXPECT_THAT(reasons(recipe, {fmt::format("{}=[{{rule: exact}}]", key)}),
                  HasSubstr(fmt::format("[{}] expected nothing with recipe {}, which uses no rewards, got a value; try "
                                        "leaving it out, or recipe: grpo or ppo\n",
                                        key, recipe)));
}

}  // namespace
}  // namespace collimate::test
